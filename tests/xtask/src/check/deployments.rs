//! Compares workflows and the examples of deployments with the schemas of two tools, and lets
//! systemd read units. Installing the tools takes longer than the checks, so a run of all steps
//! uses them only where they are.

use std::fs;
use std::process::Command;

use super::NotRun;
use crate::Outcome;
use crate::process::{program, read, root, run, target};

/// The tool with schemas of workflows and compose files, and its version.
const CHECK_JSONSCHEMA: (&str, &str) = ("check-jsonschema", "0.39.0");
/// The tool with schemas of Kubernetes.
const KUBERNETES_VALIDATE: (&str, &str) = ("kubernetes-validate", "1.37.0");

const FOLDER: &str = "transport-blocking/command/deploy";
const WORKFLOWS: &str = ".github/workflows";
const UNITS: [&str; 2] = ["nightly-report.service", "nightly-report.timer"];

/// Runs all of it, and then says what could not run.
pub(super) fn check() -> Outcome {
    let mut not_run = Vec::new();
    for check in [workflows, compose, kubernetes, systemd] {
        match check() {
            Err(error) if error.is::<NotRun>() => not_run.push(error.to_string()),
            done => done?,
        }
    }
    if not_run.is_empty() { Ok(()) } else { Err(NotRun(not_run.join("; ")).into()) }
}

fn workflows() -> Outcome {
    let mut files = Vec::new();
    for file in fs::read_dir(root().join(WORKFLOWS))? {
        files.push(file?.path().to_string_lossy().into_owned());
    }
    schema("vendor.github-workflows", &files)
}

fn compose() -> Outcome {
    schema("vendor.compose-spec", &[format!("{FOLDER}/compose.yaml")])
}

/// Compares files with a schema that comes with the tool.
fn schema(name: &str, files: &[String]) -> Outcome {
    let mut tool = tool(CHECK_JSONSCHEMA)?;
    println!("-- {name}");
    run(tool.args(["--builtin-schema", name]).args(files))
}

fn kubernetes() -> Outcome {
    run(tool(KUBERNETES_VALIDATE)?.arg("--strict").arg(format!("{FOLDER}/nightly-report.cronjob.yaml")))
}

fn tool((name, version): (&str, &str)) -> Outcome<Command> {
    read(&mut program(name, &["--version"]))
        .map_err(|_| NotRun(format!("{name} is not on PATH (pip install {name}=={version})")))?;
    Ok(program(name, &[]))
}

/// Lets systemd read the units, with a program that exists in place of the installed ones.
fn systemd() -> Outcome {
    let version = read(&mut program("systemd-analyze", &["--version"])).map_err(|_| {
        NotRun("systemd-analyze is not on PATH (apt-get install systemd), so no unit was read".into())
    })?;
    println!("-- {}", version.lines().next().unwrap_or_default());
    let folder = target().join("units");
    fs::create_dir_all(&folder)?;
    let mut verify = program("systemd-analyze", &["verify", "--man=no", "--recursive-errors=no"]);
    for name in UNITS {
        let unit = fs::read_to_string(root().join(FOLDER).join(name))?;
        fs::write(folder.join(name), unit.replace("=/usr/bin/quorlock ", "=/bin/true "))?;
        verify.arg(folder.join(name));
    }
    run(&mut verify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_installs_the_same_tools() {
        let workflow = fs::read_to_string(root().join(WORKFLOWS).join("ci.yml")).unwrap();
        for (name, version) in [CHECK_JSONSCHEMA, KUBERNETES_VALIDATE] {
            assert!(workflow.contains(&format!(" {name}=={version}")), "{name}");
        }
    }
}
