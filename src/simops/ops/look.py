"""How a report looks, by day and by night, and the few lines that sort its tables."""

STYLE = """
:root{color-scheme:light dark;--bg:#fcfcfa;--ink:#22303c;--soft:#5d6b76;--rule:#d8ddda;--box:#f1f3ef;
--c0:#2a7f62;--c1:#c2571a;--c2:#3b6fb6;--c3:#9a4fa0;--c4:#a8871c;--c5:#4d8f9c;--c6:#b33a4a;--c7:#6d6a5d;
--pass:#2a7f62;--fail:#b3261e;--marginal:#a86c00;--unknown:#5d6b76}
@media(prefers-color-scheme:dark){:root{--bg:#14191d;--ink:#dde4e6;--soft:#93a1a9;--rule:#333d44;--box:#1d252b;
--c0:#5fc29b;--c1:#f0955a;--c2:#7fabe8;--c3:#d292d7;--c4:#dcbf5e;--c5:#80c6d2;--c6:#f08793;--c7:#b3b0a2;
--pass:#5fc29b;--fail:#ff8a80;--marginal:#f2b84b;--unknown:#93a1a9}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:980px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 8px;padding-top:10px;border-top:1px solid var(--rule)}
p{margin:8px 0;max-width:76ch}.lead{color:var(--soft);font-size:16px}
nav{display:flex;flex-wrap:wrap;gap:4px 18px;margin:14px 0;font-size:14px}a{color:var(--c2)}
.status b{font-size:22px;margin-right:8px}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:10px 0;font-size:13.5px}
th,td{padding:4px 12px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
thead th{color:var(--soft);font-weight:600;white-space:nowrap}.facts th{color:var(--soft);font-weight:400}
.sortable thead th{cursor:pointer}.sortable thead th:hover{color:var(--ink)}
td.number{text-align:right;font-variant-numeric:tabular-nums}td.none{color:var(--soft)}
figure{margin:14px 0;overflow-x:auto}figcaption{color:var(--soft);font-size:13px;max-width:80ch}
figure svg{width:100%;min-width:520px;max-width:900px;height:auto;display:block}
figure img{max-width:100%;border-radius:4px;display:block}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(240px,1fr));gap:12px}.gallery figure{margin:0}
pre{background:var(--box);padding:10px 14px;border-radius:6px;overflow-x:auto;font-size:13px}
svg text{fill:var(--ink);font-family:inherit}
.line{fill:none;stroke-width:2}.band{opacity:.18;stroke:none}.fill{stroke:none}
.grid{stroke:var(--rule);stroke-width:1;fill:none}.axis{stroke:var(--soft);stroke-width:1;fill:none}
.bound{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3;fill:none}
.heat{fill:var(--c2);stroke:var(--rule);stroke-width:.5}
.heat.bad{fill:var(--fail)}.heat.good{fill:var(--pass)}.facts td.number{text-align:left}
.open{fill:none;stroke:var(--soft);stroke-width:.7;stroke-dasharray:3 3}
.tag{white-space:nowrap}
figure svg.half{min-width:300px;max-width:none}figure svg.wide-chart{min-width:860px;max-width:none}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:4px 20px}
.pair figure{margin:8px 0}.pair figure svg{min-width:0}.pair svg:not(.half) text{font-size:17px}
.facts td{overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:14px 0}
.tiles div{background:var(--box);border-radius:8px;padding:10px 14px}.tiles b{display:block;font-size:20px}
.tiles span{color:var(--soft);font-size:13px}
.box{fill:var(--box);stroke:var(--soft);stroke-width:1}.box.k-pass{stroke:var(--pass);stroke-width:2}
.box.k-fail{stroke:var(--fail);stroke-width:2}.box.k-marginal{stroke:var(--marginal);stroke-width:2}
.edge{fill:none;stroke:var(--soft);stroke-width:1.1;opacity:.75}
pre.diff .add{color:var(--pass)}pre.diff .del{color:var(--fail)}pre.diff .at{color:var(--soft)}
details{margin:8px 0}summary{cursor:pointer;color:var(--c2)}h3{font-size:15.5px;margin:20px 0 4px}
b.k-pass{color:var(--pass)}b.k-fail{color:var(--fail)}b.k-marginal{color:var(--marginal)}
b.k-not-enough-evidence{color:var(--unknown)}
.line.k-pass{stroke:var(--pass)}.line.k-fail{stroke:var(--fail)}.line.k-marginal{stroke:var(--marginal)}
.line.k-not-enough-evidence,.line.k-other{stroke:var(--unknown)}
.fill.k-pass{fill:var(--pass)}.fill.k-fail{fill:var(--fail)}.fill.k-marginal{fill:var(--marginal)}
.fill.k-not-enough-evidence,.fill.k-other{fill:var(--unknown)}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}
.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}
.fill.c0,.band.c0{fill:var(--c0)}.fill.c1,.band.c1{fill:var(--c1)}.fill.c2,.band.c2{fill:var(--c2)}
.fill.c3,.band.c3{fill:var(--c3)}.fill.c4,.band.c4{fill:var(--c4)}.fill.c5,.band.c5{fill:var(--c5)}
.fill.c6,.band.c6{fill:var(--c6)}.fill.c7,.band.c7{fill:var(--c7)}
@media(max-width:640px){
main{padding:16px 12px 48px}h1{font-size:22px}th,td{padding:4px 9px 4px 0}
.wide table:not(.rows){min-width:680px}.tiles b{font-size:17px}}
@media print{nav{display:none}body{background:#fff}}
"""

SORT = """
document.querySelectorAll("table.sortable").forEach(function(t){
t.tHead.querySelectorAll("th").forEach(function(h,i){var up=false;h.addEventListener("click",function(){up=!up;
var b=t.tBodies[0],r=Array.from(b.rows);r.sort(function(p,q){var x=p.cells[i],y=q.cells[i];
var a=x.dataset.v,c=y.dataset.v;
var d=a!==undefined&&c!==undefined?parseFloat(a)-parseFloat(c):x.textContent.localeCompare(y.textContent);
return up?d:-d});r.forEach(function(x){b.appendChild(x)})})})});
"""
