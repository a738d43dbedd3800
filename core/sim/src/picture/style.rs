//! The colours: calm ones, with enough contrast on their own ground, in light and dark
//! surroundings.

/// How many clients have their own colour; further clients share colours.
pub(super) const COLOURS: usize = 6;

/// The rules. Each colour is written out, because not every program that shows SVG knows variables.
/// Programs that know no colour schemes show the light one.
pub(super) const STYLE: &str = "\
text{font:16px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#25303b}
.title{font-size:19px;font-weight:600}
.mute{fill:#5b6875}
.mid{text-anchor:middle}
.bad{fill:#b3261e}
.good{fill:#1f6b43}
.ground{fill:#fdfdfb}
.halo{fill:#fdfdfb;fill-opacity:.86}
path,circle{fill:none}
.lane{stroke:#c3ccd4;stroke-width:1.5}
.axis{stroke:#c3ccd4}
.gap{fill:#eef1f3;fill-opacity:.8}
.zig{stroke:#93a0ac;stroke-width:1.3}
.say,.ans{stroke-width:1.5}
.ans{stroke-dasharray:4 3;stroke-opacity:.65}
.lostway{stroke-dasharray:1.5 4;stroke-width:1.8;stroke-linecap:round}
.c0{stroke:#2866a8}.c1{stroke:#b0640f}.c2{stroke:#0e7a6b}.c3{stroke:#85479b}.c4{stroke:#6a6f1d}.c5{stroke:#a23f62}
.f0{fill:#2866a8}.f1{fill:#b0640f}.f2{fill:#0e7a6b}.f3{fill:#85479b}.f4{fill:#6a6f1d}.f5{fill:#a23f62}
.tip.c0{fill:#2866a8}.tip.c1{fill:#b0640f}.tip.c2{fill:#0e7a6b}.tip.c3{fill:#85479b}.tip.c4{fill:#6a6f1d}.tip.c5{fill:#a23f62}
.tip{stroke:none;fill-opacity:.9}
.bar{fill-opacity:.3;stroke-width:1.2}
.key{fill-opacity:.55}
.b0{fill:#2866a8;stroke:#2866a8}.b1{fill:#b0640f;stroke:#b0640f}.b2{fill:#0e7a6b;stroke:#0e7a6b}
.b3{fill:#85479b;stroke:#85479b}.b4{fill:#6a6f1d;stroke:#6a6f1d}.b5{fill:#a23f62;stroke:#a23f62}
.fault{fill:#e9e3da}
.hatch{stroke:#a8977f;stroke-width:1.2}
.alarm{fill:#d93a31;fill-opacity:.13}
.edge{stroke:#b3261e;stroke-width:1.6}
.yes{fill:#2c7d52}
.tick{stroke:#fdfdfb;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.no{fill:#fdfdfb;stroke:#6d7883;stroke-width:1.6}
.nox{stroke:#6d7883;stroke-width:1.6;stroke-linecap:round}
.warn{fill:#b26a00}
.done{fill:#7b8792}
.gone,.lost{stroke:#b3261e;stroke-width:2.2;stroke-linecap:round}
.quorum{fill:#25303b;stroke:#fdfdfb;stroke-width:1.5}
.said{fill:#25303b}
.bolt{fill:#8a6d3b;stroke:#fdfdfb;stroke-width:1}
.broken{fill:#b3261e;stroke:#fdfdfb;stroke-width:1}
@media (prefers-color-scheme:dark){
text{fill:#dde3e8}
.mute{fill:#9aa7b2}
.bad{fill:#ff8a80}
.good{fill:#7fd1a4}
.ground{fill:#14191e}
.halo{fill:#14191e}
.lane,.axis{stroke:#3d4852}
.gap{fill:#20272e}
.zig{stroke:#71808d}
.c0{stroke:#7db4ef}.c1{stroke:#e8a35a}.c2{stroke:#5cc5b3}.c3{stroke:#c99add}.c4{stroke:#bfc46a}.c5{stroke:#e78fae}
.tip{stroke:none}
.f0,.tip.c0{fill:#7db4ef}.f1,.tip.c1{fill:#e8a35a}.f2,.tip.c2{fill:#5cc5b3}
.f3,.tip.c3{fill:#c99add}.f4,.tip.c4{fill:#bfc46a}.f5,.tip.c5{fill:#e78fae}
.b0{fill:#7db4ef;stroke:#7db4ef}.b1{fill:#e8a35a;stroke:#e8a35a}.b2{fill:#5cc5b3;stroke:#5cc5b3}
.b3{fill:#c99add;stroke:#c99add}.b4{fill:#bfc46a;stroke:#bfc46a}.b5{fill:#e78fae;stroke:#e78fae}
.fault{fill:#3b3428}
.hatch{stroke:#7c6f5b}
.alarm{fill:#ff6d61;fill-opacity:.17}
.edge{stroke:#ff8a80}
.yes{fill:#5cb886}
.tick{stroke:#14191e}
.no{fill:#14191e;stroke:#9aa7b2}
.nox{stroke:#9aa7b2}
.warn{fill:#e6a23c}
.done{fill:#8694a0}
.gone,.lost{stroke:#ff8a80}
.quorum{fill:#dde3e8;stroke:#14191e}
.said{fill:#dde3e8}
.bolt{fill:#d8b26e;stroke:#14191e}
.broken{fill:#ff8a80;stroke:#14191e}
}";
