//! [`Job`]: manifests of an Indexed Job, one for every storage class.
//!
//! The objects are built as JSON and written as a list, which `kubectl apply`
//! reads as it reads YAML.

use lab::shard::{FleetPlan, ShardError};
use lab::system::SystemId;
use serde_json::{Value, json};

/// Where the experiment is in a pod.
const EXPERIMENT: &str = "/experiment";
/// What is measured in a pod that claims a volume.
pub const DATA: &str = "/data";
const SPOOL: &str = "/spool";

/// A user ID that belongs to no user of the host.
const USER: u32 = 65532;

/// The number of times that a failed shard is started again.
const RETRIES: u32 = 5;

/// A key, a value and an effect: `key`, `key=value`, `key=value:NoSchedule`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    key: String,
    value: Option<String>,
    effect: Option<String>,
}

impl std::str::FromStr for Toleration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, effect) = match text.rsplit_once(':') {
            Some((rest, effect)) => (rest, Some(effect)),
            None => (text, None),
        };
        let (key, value) = match rest.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (rest, None),
        };
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if key.is_empty() || effect.is_some_and(|effect| !effects.contains(&effect)) {
            return Err(format!(
                "{text} isn't a toleration; write KEY, KEY=VALUE or KEY=VALUE:NoSchedule"
            ));
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.map(str::to_owned),
        })
    }
}

/// The settings of the pods that depend on the cluster.
#[derive(Clone, Debug)]
pub struct Job {
    /// The image that has the program.
    pub image: String,
    /// Namespace.
    pub namespace: Option<String>,
    /// Storage classes: each is measured by a Job of its own, in a volume that
    /// every pod claims. Without any the node's own disk is.
    pub storage_classes: Vec<String>,
    /// Size of such a volume, in Kubernetes' notation.
    pub volume_size: String,
    /// Pods at the same time, at most.
    pub at_once: Option<u32>,
    /// Cores that every pod is given, in Kubernetes' notation.
    pub cores: String,
    /// Memory that every pod is given.
    pub memory: String,
    /// Taints of nodes that do not keep the pods away.
    pub tolerations: Vec<Toleration>,
    /// Labels that a node must have.
    pub node_labels: Vec<(String, String)>,
    /// The secret whose key `url` is the store.
    pub secret: String,
}

impl Job {
    /// The manifests, as JSON.
    ///
    /// # Errors
    /// [`ShardError::Name`] where a storage class makes no name.
    pub fn manifests(&self, experiment: &FleetPlan) -> Result<String, ShardError> {
        let mut items = Vec::new();
        if self.storage_classes.is_empty() {
            items.extend(self.objects(experiment, None));
        }
        for class in &self.storage_classes {
            // Results of one class are not those of another.
            let of_class = experiment.named(format!("{}-{class}", experiment.name()))?;
            items.extend(self.objects(&of_class, Some(class)));
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        Ok(format!("{list:#}\n"))
    }

    fn objects(&self, experiment: &FleetPlan, class: Option<&str>) -> [Value; 2] {
        let shards = experiment.shards();
        let name = dns_label(experiment.name());
        let labels = json!({
            "app.kubernetes.io/name": "cryptmark",
            "app.kubernetes.io/instance": name,
        });
        let mut metadata = json!({ "name": name, "labels": labels });
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let configuration = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": { "experiment.toml": experiment.to_toml() },
        });
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {
                "completionMode": "Indexed",
                "completions": shards,
                "parallelism": self.at_once.unwrap_or(shards).min(shards),
                "backoffLimitPerIndex": RETRIES,
                "maxFailedIndexes": shards,
                "podFailurePolicy": { "rules": [
                    // A drained or lost node is not the shard's fault.
                    { "action": "Ignore", "onPodConditions": [
                        { "type": "DisruptionTarget", "status": "True" } ] },
                    // 2: bad input, which another try would find again; 4: it would spoil data.
                    { "action": "FailIndex", "onExitCodes": {
                        "containerName": "cryptmark", "operator": "In", "values": [2, 4] } },
                ] },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": self.pod(experiment, &name, class),
                },
            },
        });
        [configuration, job]
    }

    fn pod(&self, experiment: &FleetPlan, name: &str, class: Option<&str>) -> Value {
        let privileged = needs_privilege(experiment);
        let simulated = experiment.is_simulated();
        let resources = json!({ "cpu": self.cores, "memory": self.memory });
        let mut mounts = vec![
            json!({ "name": "experiment", "mountPath": EXPERIMENT, "readOnly": true }),
            json!({ "name": "spool", "mountPath": SPOOL }),
        ];
        let mut volumes = vec![
            json!({ "name": "experiment", "configMap": { "name": name } }),
            json!({ "name": "spool", "emptyDir": {} }),
        ];
        let mut arguments = vec![
            "run".to_owned(),
            format!("{EXPERIMENT}/experiment.toml"),
            "--shard".to_owned(),
            format!("$(SHARD)+1/{}", experiment.shards()),
            "--no-progress".to_owned(),
        ];
        if !simulated {
            arguments.extend(["--at".to_owned(), DATA.to_owned()]);
            mounts.push(json!({ "name": "data", "mountPath": DATA }));
            volumes.push(match class {
                None => json!({ "name": "data", "emptyDir": {} }),
                Some(class) => json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": class,
                        "resources": { "requests": { "storage": self.volume_size } },
                    } } } }),
            });
        }
        if privileged {
            mounts.push(json!({ "name": "dev", "mountPath": "/dev" }));
            volumes.push(json!({ "name": "dev", "hostPath": { "path": "/dev" } }));
        }
        let security = match privileged {
            true => json!({ "privileged": true, "runAsUser": 0 }),
            false => json!({
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "runAsUser": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            }),
        };
        let mut pod = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "securityContext": { "fsGroup": USER },
            "containers": [ {
                "name": "cryptmark",
                "image": self.image,
                "command": ["cryptmark"],
                "args": arguments,
                "env": [
                    { "name": "SHARD", "valueFrom": { "fieldRef": { "fieldPath":
                        "metadata.annotations['batch.kubernetes.io/job-completion-index']" } } },
                    { "name": "CRYPTMARK_STORE", "valueFrom": { "secretKeyRef": {
                        "name": self.secret, "key": "url" } } },
                    // Results wait below this directory while the store is unreachable.
                    { "name": "XDG_DATA_HOME", "value": SPOOL },
                ],
                // As much as is asked for, and no more: neighbours would be in the figures.
                "resources": { "requests": resources, "limits": resources },
                "securityContext": security,
                "volumeMounts": mounts,
            } ],
            "volumes": volumes,
        });
        if !self.node_labels.is_empty() {
            pod["nodeSelector"] = self
                .node_labels
                .iter()
                .map(|(key, value)| (key.clone(), json!(value)))
                .collect();
        }
        if !self.tolerations.is_empty() {
            pod["tolerations"] = self.tolerations.iter().map(Toleration::manifest).collect();
        }
        if !simulated {
            // One pod a node: two would measure each other.
            pod["affinity"] = json!({ "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [ {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": { "matchLabels": { "app.kubernetes.io/name": "cryptmark" } },
                } ] } });
        }
        pod
    }
}

impl Toleration {
    fn manifest(&self) -> Value {
        let mut toleration = json!({ "key": self.key });
        match &self.value {
            Some(value) => {
                toleration["operator"] = json!("Equal");
                toleration["value"] = json!(value);
            }
            None => toleration["operator"] = json!("Exists"),
        }
        if let Some(effect) = &self.effect {
            toleration["effect"] = json!(effect);
        }
        toleration
    }
}

/// Whether a system of the plan makes devices or mounts.
fn needs_privilege(experiment: &FleetPlan) -> bool {
    let makes = |system: &SystemId| matches!(system, SystemId::DmCrypt | SystemId::BuiltinFuse);
    experiment.mounts() || experiment.systems().iter().any(makes)
}

/// A name as Kubernetes has them: small letters, digits and hyphens. Names that
/// differ elsewhere get a tail that keeps them apart.
fn dns_label(name: &str) -> String {
    // The longest name that leaves room for what a Job appends to its pods' names.
    const LONGEST: usize = 40;
    let plain: String = name
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '-',
        })
        .collect();
    let same = plain == name && plain.len() <= LONGEST && !plain.ends_with('-');
    if same {
        return plain;
    }
    let tail = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let kept: String = plain.chars().take(LONGEST - 9).collect();
    format!("{}-{:08x}", kept.trim_end_matches('-'), tail >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_and_stay_apart() {
        assert_eq!(dns_label("spring-2026"), "spring-2026");
        let (large, dotted) = (dns_label("Spring"), dns_label("spring."));
        assert_ne!(large, dotted);
        for name in [large, dotted, dns_label(&"x".repeat(60)), dns_label("a-")] {
            assert!(name.len() <= 40 && !name.ends_with('-'), "{name}");
            let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(fit), "{name}");
        }
    }

    #[test]
    fn tolerations_are_read() {
        let read = |text: &str| text.parse::<Toleration>().unwrap().manifest();
        assert_eq!(read("gpu"), json!({ "key": "gpu", "operator": "Exists" }));
        assert_eq!(
            read("disk=slow:NoSchedule"),
            json!({ "key": "disk", "operator": "Equal", "value": "slow", "effect": "NoSchedule" })
        );
        assert!("x:Never".parse::<Toleration>().is_err());
        assert!("=x".parse::<Toleration>().is_err());
    }
}
