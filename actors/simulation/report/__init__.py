"""The report of a simulation: one HTML file to look at, without scripts and without anything from outside.

`page.report_page` is the front door; each plot is a file of its own, drawn as SVG whose colours the style sheet decides.
"""
