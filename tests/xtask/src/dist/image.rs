//! The root of the image. The Dockerfile beside the command's manifest copies it, so this is what
//! docker puts into the only layer. docker itself is not needed, and not run.

use std::fs;

use super::archive::complete;
use super::binary::Binary;
use super::pages::{COMMAND, LICENCES};
use super::{empty, folder, megabytes};
use crate::Outcome;
use crate::process::{program, root, run};

/// Lines of the Dockerfile with which that is true.
const LINES: [&str; 3] = ["FROM scratch", "COPY . /", "ENTRYPOINT [\"/quorlock\"]"];

pub(super) fn make(binary: &Binary) -> Outcome {
    let dockerfile = fs::read_to_string(root().join(COMMAND).join("Dockerfile"))?;
    if let Some(missing) = LINES.iter().find(|line| !dockerfile.lines().any(|one| one == **line)) {
        return Err(format!("the Dockerfile lacks {missing:?}").into());
    }
    let image = empty("image")?;
    fs::copy(binary.file()?, image.join("quorlock"))?;
    // Who gets the image gets the licences.
    let licences = "usr/share/doc/quorlock";
    fs::create_dir_all(image.join(licences))?;
    for licence in LICENCES {
        fs::copy(root().join(licence), image.join(licences).join(licence))?;
    }
    complete(&image, &["quorlock"])?;
    let layer = folder().join("layer.tar");
    run(program("tar", &["--create", "--owner=0", "--group=0", "--file"])
        .arg(&layer)
        .arg("-C")
        .arg(&image)
        .arg("."))?;
    println!("its only layer: {}", megabytes(fs::metadata(&layer)?.len()));
    println!("docker was not run: docker build --file {COMMAND}/Dockerfile target/dist/image");
    Ok(fs::remove_file(layer)?)
}
