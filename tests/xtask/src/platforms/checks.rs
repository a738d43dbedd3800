//! What checks the claims of the table.

use std::cell::LazyCell;
use std::process::Command;

use super::lowest;
use super::table::{Claim, How, Platform};
use super::tools::{Rust, Zig};
use crate::Outcome;
use crate::check::NotRun;
use crate::process::run;

/// A part of the workspace, about which the table says something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Libraries,
    Tls,
    Command,
}

pub(super) const PARTS: [Part; 3] = [Part::Libraries, Part::Tls, Part::Command];

impl Part {
    /// Its column in the table.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Libraries => "libraries",
            Self::Tls => "with TLS",
            Self::Command => "command",
        }
    }

    pub(super) fn claim(self, platform: &Platform) -> Claim {
        match self {
            Self::Libraries => platform.libraries,
            Self::Tls => platform.tls,
            Self::Command => platform.command,
        }
    }

    /// What cargo compiles of it, and with which features.
    fn words(self, platform: &Platform) -> Vec<&'static str> {
        let packages: &[_] = match self {
            Self::Libraries => platform.packages,
            Self::Tls => &[platform.packages, &["quorlock-tls"]].concat(),
            Self::Command => &["quorlock"],
        };
        let features: &[_] = match (self, platform.how) {
            (Self::Tls, How::LowestVersions) => &["--all-features"],
            (Self::Tls, _) => &["--features", WITH_RING],
            _ => &[],
        };
        let packages = packages.iter().flat_map(|name| ["-p", *name]);
        packages.chain(features.iter().copied()).collect()
    }
}

const WITH_RING: &str = "quorlock-tokio/tls-ring,quorlock-smol/tls-ring,quorlock-blocking/tls-ring";

/// The tools, or why one is missing. Each is looked for, or fetched, when it is needed.
pub(super) struct Tools {
    rust: LazyCell<Result<Rust, String>>,
    zig: LazyCell<Result<Zig, String>>,
}

impl Tools {
    pub(super) fn new() -> Self {
        Self { rust: LazyCell::new(Rust::find), zig: LazyCell::new(Zig::find) }
    }

    /// What checks a claim about a part of a platform.
    fn cargo(&self, platform: &Platform, part: Part) -> Outcome<Command> {
        let rust = self.rust.as_ref().map_err(|missing| NotRun(missing.clone()))?;
        let mut cargo = rust.cargo();
        let command = if part.claim(platform) == Claim::Built { "build" } else { "check" };
        cargo.args([command, "--quiet", "--locked"]).args(part.words(platform));
        match platform.how {
            How::Ci => return Err("only .ci/run can check this".into()),
            How::OldestRust => {}
            How::LowestVersions => {
                cargo.current_dir(lowest::set_up(rust)?);
            }
            How::Target { zig } => {
                cargo.args(["-Zbuild-std=std,panic_abort", "--target", platform.name]);
                if let Some(zig_target) = zig {
                    let zig = self.zig.as_ref().map_err(|missing| NotRun(missing.clone()))?;
                    zig.compile(&mut cargo, platform.name, zig_target);
                }
            }
        }
        Ok(cargo)
    }

    /// Checks what is claimed of a part of a platform. Returns what there is to say about it.
    pub(super) fn check(&self, platform: &Platform, part: Part) -> Outcome<String> {
        let claim = part.claim(platform);
        Ok(match claim {
            Claim::Tested => format!("{}, by .ci/run", claim.word()),
            Claim::Expected(why) | Claim::No(why) => format!("{}: {why}", claim.word()),
            Claim::Built | Claim::Checked => {
                run(&mut self.cargo(platform, part)?)?;
                claim.word().to_owned()
            }
        })
    }
}
