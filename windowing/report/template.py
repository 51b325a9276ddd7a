"""The report page: one file, no script, nothing fetched, light and dark."""

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ name }} - Tidemark</title>
<style>
:root { color-scheme: light dark;
  --ink: #1c2430; --soft: #5d6877; --paper: #fbfbfa; --card: #fff; --rule: #e2e5e9;
  --good: #1f6f54; --bad: #b3261e; --warn: #9a5b00; --accepted: #2a6fdb; --late: #d9480f; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ee; --soft: #9aa5b4; --paper: #14171c; --card: #1c2027; --rule: #313741;
  --good: #6fd0aa; --bad: #ff8a80; --warn: #f0b65a; --accepted: #7fb0ff; --late: #ff9a66; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 74rem;
  background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.7rem; letter-spacing: -.01em; }
h2 { margin: 2.4rem 0 .6rem; font-size: 1.1rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.4rem 0; }
.card { flex: 1 0 auto; min-width: 8.5rem; background: var(--card);
  border: 1px solid var(--rule); border-radius: 8px;
  padding: .7rem .9rem; }
.card b { display: block; font-size: 1.25rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.wide { overflow-x: auto;
  background: var(--card); border: 1px solid var(--rule); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
td.text { white-space: normal; min-width: 12rem; overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
th { font-weight: 600; font-size: .82rem; color: var(--soft); } .n { text-align: right; }
figure { margin: 0; padding: .8rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: 8px; }
figcaption { color: var(--soft); font-size: .85rem; }
svg { display: block; width: 100%; height: 6rem; }
polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.axis { stroke: var(--rule); vector-effect: non-scaling-stroke; }
polyline.accepted { stroke: var(--accepted); } polyline.late { stroke: var(--late); }
circle.accepted, .key.accepted { fill: var(--accepted); color: var(--accepted); }
circle.late, .key.late { fill: var(--late); color: var(--late); }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
a { color: var(--accepted); }
code { font: .9em ui-monospace, monospace; }
</style>
</head>
<body>
<h1>{{ name }}</h1>
<p class="soft">{{ subtitle }}</p>
{% for text in notices %}<p class="warn">{{ text }}</p>
{% endfor %}
<div class="cards">
{% for label, value in cards %}<div class="card"><b>{{ value }}</b><span>{{ label }}</span></div>
{% endfor %}</div>
{% if curve %}<figure>{{ curve }}<figcaption>Rows per run, {{ curve_range }}:
<span class="key accepted">accepted</span>, <span class="key late">late</span>;
the top is {{ curve_top }}.</figcaption></figure>
{% endif %}
{% for section in sections %}<h2>{{ section.title }}</h2>
{% if section.text %}<p class="soft">{{ section.text }}
{%- if section.link %}. <a href="{{ section.link.href }}">{{ section.link.text }}</a>{% endif %}</p>
{% endif %}{% if section.rows %}<div class="wide"><table>
<thead><tr>
{%- for c in section.columns %}<th{% if c.number %} class="n"{% endif %}>{{ c.name }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in section.rows %}<tr>{% for v in row %}{% set c = section.columns[loop.index0] -%}
<td class="{{ 'n' if c.number else 'text' if c.long else '' }} {{ v.css }}">{{ v.text }}</td>
{%- endfor %}</tr>
{% endfor %}</tbody></table></div>
{% endif %}{% endfor %}
<p class="soft">Every time is UTC. Windows contain their start and not their end.</p>
</body>
</html>
"""
