// Draws every figure of the page into the element that has its name. Text and axes have the
// colours of the style sheet, so that they follow the theme and the printer without a script.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const finger = window.matchMedia("(pointer: coarse)").matches;
  const axis = { automargin: true, zeroline: false, fixedrange: finger, title: { font: { size: 13 } } };
  const look = {
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13 },
    margin: { l: 8, r: 8, t: 8, b: 8 },
    hovermode: "x unified",
    hoverlabel: { bgcolor: "#1c2430", bordercolor: "#1c2430", font: { color: "#ffffff" } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" },
    // A finger scrolls the page, and does not draw a rectangle to zoom into.
    dragmode: finger ? false : "zoom",
  };
  const config = { displayModeBar: false, responsive: true, displaylogo: false };

  const charts = [];
  for (const [name, figure] of Object.entries(figures)) {
    const place = document.getElementById(`chart-${name}`);
    const layout = { ...look, showlegend: figure.data.length > 1, ...figure.layout };
    for (const each of ["xaxis", "yaxis"]) {
      const given = figure.layout[each];
      layout[each] = { ...axis, ...given, title: { ...axis.title, ...given.title } };
    }
    Plotly.newPlot(place, figure.data, layout, config);
    charts.push(place);
  }

  const folded = [];
  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details:not([open])")) {
      each.open = true;
      folded.push(each);
    }
    charts.forEach((place) => Plotly.relayout(place, { autosize: false, width: 680 }));
  });
  window.addEventListener("afterprint", () => {
    folded.splice(0).forEach((each) => { each.open = false; });
    charts.forEach((place) => Plotly.relayout(place, { autosize: true, width: null }));
  });
})();
