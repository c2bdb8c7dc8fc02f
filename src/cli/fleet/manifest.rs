//! `cryptmark fleet manifest`: what Slurm or Kubernetes take.

use crate::cli::Failure;
use crate::cli::report::put;
use crate::cli::whole::Kind;
use clap::{ArgGroup, Args};
use fleet::kubernetes::{DATA, Job, Toleration};
use fleet::slurm::{Array, Unfit};
use lab::shard::FleetPlan;
use std::path::PathBuf;

/// Options of `cryptmark fleet manifest`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("engine").required(true).args(["slurm", "kubernetes"]))]
pub struct ManifestOptions {
    /// The experiment's file, written by `cryptmark fleet plan`
    experiment: String,
    /// A script for sbatch: a job array whose tasks start again when a node is lost
    #[arg(long)]
    slurm: bool,
    /// An Indexed Job with its ConfigMap, for kubectl apply
    #[arg(long)]
    kubernetes: bool,
    /// Maximum number of shards that run at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Memory per shard, as Slurm or Kubernetes writes it, e.g. 2G or 2Gi
    #[arg(long)]
    memory: Option<String>,
    /// Cores per shard
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    cores: u32,
    /// Slurm: partition
    #[arg(long, conflicts_with = "kubernetes")]
    partition: Option<String>,
    /// Slurm: time limit of a task, e.g. 1:30:00
    #[arg(long, conflicts_with = "kubernetes")]
    time: Option<String>,
    /// Slurm: what to measure on every host: a directory, a file or a block device
    #[arg(long, conflicts_with = "kubernetes", value_name = "PATH")]
    at: Option<String>,
    /// Slurm: path of cryptmark on the hosts
    #[arg(
        long,
        conflicts_with = "kubernetes",
        value_name = "PATH",
        default_value = "cryptmark"
    )]
    program: String,
    /// Kubernetes: container image that contains cryptmark
    #[arg(long, conflicts_with = "slurm", default_value = "cryptmark:latest")]
    image: String,
    /// Kubernetes: namespace
    #[arg(long, conflicts_with = "slurm")]
    namespace: Option<String>,
    /// Kubernetes: measure this storage class in a volume that each pod claims; can be repeated
    #[arg(long = "storage-class", conflicts_with = "slurm", value_name = "NAME")]
    storage_classes: Vec<String>,
    /// Kubernetes: size of each claimed volume
    #[arg(
        long,
        conflicts_with = "slurm",
        requires = "storage_classes",
        default_value = "16Gi"
    )]
    volume_size: String,
    #[allow(rustdoc::broken_intra_doc_links, reason = "the help text has brackets")]
    /// Kubernetes: a taint that the pods tolerate, KEY[=VALUE][:EFFECT]; can be repeated
    #[arg(long = "toleration", conflicts_with = "slurm", value_name = "TAINT")]
    tolerations: Vec<Toleration>,
    /// Kubernetes: a label that a node must have, KEY=VALUE; can be repeated
    #[arg(long = "node-label", conflicts_with = "slurm", value_name = "LABEL", value_parser = label)]
    node_labels: Vec<(String, String)>,
    /// Kubernetes: the secret whose key `url` holds the URL of the store
    #[arg(long, conflicts_with = "slurm", default_value = "cryptmark-store")]
    secret: String,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    output: PathBuf,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text} isn't a label; write KEY=VALUE")),
    }
}

impl From<Unfit> for Failure {
    fn from(error: Unfit) -> Self {
        Self::of(2, &error, error.remedy())
    }
}

/// Runs the command.
pub fn run(options: &ManifestOptions) -> Result<(), Failure> {
    let Some(experiment) = FleetPlan::load(&options.experiment)? else {
        return Err(Failure::new(
            2,
            format!(
                "{} is a plan, not an experiment in shards",
                options.experiment
            ),
            format!(
                "Split it: cryptmark fleet plan {} --hosts N -o FILE.toml.",
                options.experiment
            ),
        ));
    };
    let places = options.at.iter().map(String::as_str);
    for place in places.chain(options.storage_classes.first().map(|_| DATA)) {
        experiment.check_place(place.as_ref())?;
    }
    let text = match options.slurm {
        true => Array {
            partition: options.partition.clone(),
            time: options.time.clone(),
            memory: options.memory.clone(),
            cores: options.cores,
            at_once: options.at_once,
            at: options.at.clone(),
            program: options.program.clone(),
        }
        .script(&experiment)?,
        false => Job {
            image: options.image.clone(),
            namespace: options.namespace.clone(),
            storage_classes: options.storage_classes.clone(),
            volume_size: options.volume_size.clone(),
            at_once: options.at_once,
            cores: options.cores.to_string(),
            memory: options.memory.clone().unwrap_or_else(|| "1Gi".to_owned()),
            tolerations: options.tolerations.clone(),
            node_labels: options.node_labels.clone(),
            secret: options.secret.clone(),
        }
        .manifests(&experiment)?,
    };
    put(&options.output, Kind::Other, &text)
}
