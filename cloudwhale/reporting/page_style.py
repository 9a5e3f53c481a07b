"""How pages look: on a screen by day and by night, on a phone, on A4."""

SERIES = 8
"""So many colours there are; the last is for what is put together as the rest."""

# Eight colours that people with any eyesight tell apart: Okabe and Ito, "Color Universal Design",
# 2008 (https://jfly.uni-koeln.de/color/), the yellow darker on white; the last one grey.
_LIGHT = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a600", "#8a929c")
_DARK = ("#4ba3dd", "#f0b429", "#2fc49a", "#e39cc3", "#7cc7f2", "#f0803c", "#e5d84a", "#7d8690")


def _colours(colours: tuple[str, ...]) -> str:
    return "".join(f"--s{number}:{colour};" for number, colour in enumerate(colours))


_DAY = (
    "--back:#fff;--ink:#1b2128;--quiet:#5c6672;--line:#d9dee4;--card:#f5f7f9;"
    "--good:#0b7a4b;--warn:#8a5a00;--bad:#b3261e;--busy:#0a6a8f;" + _colours(_LIGHT)
)
_NIGHT = (
    "--back:#14181d;--ink:#e6eaee;--quiet:#9aa5b1;--line:#333b44;--card:#1d232a;"
    "--good:#4fd194;--warn:#f0b429;--bad:#ff8a80;--busy:#6cc8ea;" + _colours(_DARK)
)

STYLE = (
    f":root{{color-scheme:light dark;{_DAY}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_NIGHT}}}}}"
    """
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:68rem;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2rem 0 .5rem;break-after:avoid;overflow-wrap:anywhere}
p,ul{margin:.4rem 0;max-width:50rem;overflow-wrap:anywhere}
ul{padding-left:1.2rem}
.quiet{color:var(--quiet)}.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
.busy{color:var(--busy)}.strong{font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;
margin:1rem 0}
.tiles:has(>:nth-child(5)){grid-template-columns:repeat(2,1fr)}
@media (min-width:34rem){.tiles:has(>:nth-child(5)){grid-template-columns:repeat(3,1fr)}}
@media (min-width:64rem){.tiles:has(>:nth-child(5)){grid-template-columns:repeat(6,1fr)}}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .9rem;
break-inside:avoid;min-width:0}
.tile b{display:block;font-size:1.4rem;line-height:1.3;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.tile span{display:block;font-size:.85rem;color:var(--quiet)}
code{font:.9em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600;color:var(--quiet);white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap}
td.t{overflow-wrap:break-word}.folded .t{overflow-wrap:anywhere}
tfoot tr{break-before:avoid}
tfoot td{font-weight:600;border-bottom:0;border-top:2px solid var(--line)}
tr{break-inside:avoid}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.85rem;margin:.4rem 0}
.legend span{display:inline-flex;align-items:center;gap:.35rem;min-width:0;overflow-wrap:anywhere}
.legend svg{width:.8rem;height:.8rem;flex:none}
.bars{display:grid;grid-template-columns:minmax(5rem,14rem) 1fr auto;gap:.35rem .75rem;
align-items:center;margin:.6rem 0;font-size:.9rem;font-variant-numeric:tabular-nums}
.bars .row{display:contents}.bars span{min-width:0;overflow-wrap:anywhere}
.bars svg{width:100%;height:1.1rem;display:block}
.bars .n{text-align:right;white-space:nowrap}
.chart{margin:.6rem 0;break-inside:avoid;font-size:.8rem;font-variant-numeric:tabular-nums}
.plot{display:grid;align-items:start;padding-top:.5em;gap:.2rem .5rem;
grid-template-columns:auto minmax(0,1fr)}
.plot svg{width:100%;height:13rem;display:block}
.scale{display:flex;flex-direction:column-reverse;justify-content:space-between;text-align:right;
color:var(--quiet);line-height:1;height:calc(13rem + 1em);margin:-.5em 0}
.under{grid-column:2;display:flex;white-space:nowrap;justify-content:space-between;gap:.5rem;color:var(--quiet)}
.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.rest{fill:var(--card)}
"""
    + "".join(f".s{number}{{fill:var(--s{number})}}" for number in range(SERIES))
    + f"""
@page{{size:A4;margin:16mm 14mm}}
@media print{{:root{{color-scheme:light;{_DAY}}}
body{{padding:0;max-width:none;font-size:10pt}}
.wide{{overflow:visible}}h2{{margin-top:1.2rem}}.tile{{padding:.4rem .6rem}}
table{{font-size:8.5pt}}th,td{{padding:.2rem .35rem}}thead{{display:table-header-group}}
tfoot{{display:table-row-group}}
.tiles{{grid-template-columns:repeat(4,1fr)}}
.tiles:has(>:nth-child(5)){{grid-template-columns:repeat(3,1fr)}}}}
@media screen and (max-width:52rem){{
.folded table,.folded tbody,.folded tfoot{{display:block}}.folded thead{{display:none}}
.folded tr{{display:grid;grid-template-columns:repeat(auto-fill,minmax(6.8rem,1fr));
gap:.05rem .5rem;padding:.4rem 0;border-bottom:1px solid var(--line)}}
.folded tfoot tr{{border-bottom:0;border-top:2px solid var(--line)}}
.folded td{{font-size:.85rem;border:0!important;padding:0;text-align:left;white-space:normal;
min-width:0}}
.folded .t{{grid-column:1/-1}}.folded td:first-child{{font-weight:600}}
.folded td[data-head]::before{{content:attr(data-head) " ";color:var(--quiet);font-weight:400}}}}
@media screen and (max-width:34rem){{.under{{white-space:normal}}.bars{{display:block}}
.bars .row{{display:grid;grid-template-columns:1fr auto;gap:.1rem .75rem;margin:.5rem 0}}
.bars .b{{grid-column:1/-1;grid-row:2}}}}
"""
)
