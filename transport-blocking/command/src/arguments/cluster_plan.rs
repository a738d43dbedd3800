//! The arguments of `quorlock cluster-plan`.

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::common::{Hidden, Masters, url};

/// Print tags whose slots are on different masters of a cluster
///
/// All keys of one redis+cluster:// URL begin with its tag, so that they are in one slot, on one
/// master of the cluster. Several such URLs form a quorum that continues while one of these masters
/// fails over, if their tags are on different masters. This command asks a node which slots each
/// master has, and prints a URL for each tag. It changes nothing.
///
/// If slots are moved later, two tags can end up on one master. These two then have one vote
/// together, which Quorlock reports; nothing else changes.
///
/// URL is any node, such as redis://host:7000, or a redis+cluster:// URL with several. A password
/// in it is used but not printed: PASSWORD is in its place.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/cluster-plan.txt"))]
pub(crate) struct ClusterPlanArguments {
    /// A node of the cluster
    #[arg(value_name = "URL", conflicts_with = "urls", value_parser = OsStringValueParser::new().try_map(url))]
    named: Vec<Hidden<String>>,
    #[command(flatten)]
    pub(crate) nodes: Masters,
    /// How many tags to print, each on a different master
    #[arg(long, value_name = "N", default_value = "3", value_parser = count)]
    pub(crate) masters: u16,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ClusterPlanArguments {
    /// Adds the node that is named after the options to those of `-m`, and returns what the
    /// environment may complete.
    pub(super) fn incomplete(&mut self) -> &mut Masters {
        self.nodes.add(std::mem::take(&mut self.named));
        &mut self.nodes
    }
}

fn count(text: &str) -> Result<u16, &'static str> {
    text.parse().ok().filter(|count| (1..=1000).contains(count)).ok_or("needs a number from 1 to 1000")
}
