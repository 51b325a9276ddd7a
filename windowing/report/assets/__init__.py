"""What the report page is made of besides facts: template, style, script, plotting library."""
