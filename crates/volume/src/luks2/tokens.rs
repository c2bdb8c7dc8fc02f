//! [`Token`]: a description of what other programs store in a header to open a key slot.
//!
//! It includes no secret, and no key in an encrypted or encoded form. Tokens are read leniently: a
//! member that differs from its program's format is left out.

use super::read::Header;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most levels of clevis policies within policies.
const MOST_DEPTH: u32 = 4;

/// The most parts of one policy that are described.
const MOST_PARTS: usize = 16;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Its type.
    pub kind: String,
    /// The keyslots that it belongs to.
    pub keyslots: Vec<u32>,
    /// The key or device that opens the key slots by this token, in words, if the type is known.
    pub opened_by: Option<String>,
    /// The parameters in the token, by names for scripts.
    pub details: Map<String, Value>,
}

#[doc(hidden)]
impl Header {
    /// All tokens, by number.
    pub fn tokens(&self) -> BTreeMap<u32, Token> {
        let kinds = self.metadata.tokens.iter();
        let tokens = kinds.map(|(number, kind)| {
            let json = &self.json["tokens"][number.to_string()];
            let (opened_by, details) = said(kind, json).unzip();
            let token = Token {
                kind: kind.clone(),
                keyslots: self.keyslots_of_token(*number),
                opened_by,
                details: details.unwrap_or_default(),
            };
            (*number, token)
        });
        tokens.collect()
    }
}

/// The description of a token of a known type.
fn said(kind: &str, token: &Value) -> Option<(String, Map<String, Value>)> {
    let mut details = Map::new();
    let words = match kind {
        "systemd-tpm2" => tpm2(token, &mut details),
        "systemd-fido2" => fido2(token, &mut details),
        "systemd-pkcs11" => {
            let uri = keep(token, "pkcs11-uri", &mut details, "uri");
            let uri = uri.map_or_else(String::new, |uri| format!(", {uri}"));
            format!("a PKCS#11 token or smartcard{uri}")
        }
        "systemd-recovery" => "a recovery key, typed as a passphrase".to_owned(),
        "luks2-keyring" => {
            let name = "key_description";
            let key = keep(token, name, &mut details, name);
            let key = key.map_or_else(String::new, |key| format!(", `{key}`"));
            format!("a passphrase in the kernel's keyring{key}")
        }
        "clevis" => {
            let policy = token["jwe"]["protected"].as_str().and_then(policy);
            if let Some(policy) = &policy {
                details.insert("policy".into(), public(policy, 0));
            }
            match policy {
                Some(policy) => format!("clevis: {}", clevis(&policy, 0)),
                None => "clevis".to_owned(),
            }
        }
        _ => return None,
    };
    Some((words, details))
}

/// The text of a token's member, which `details` get as `name`.
fn keep<'a>(
    token: &'a Value,
    member: &str,
    details: &mut Map<String, Value>,
    name: &str,
) -> Option<&'a str> {
    let text = token[member].as_str()?;
    details.insert(name.into(), text.into());
    Some(text)
}

/// A TPM, the state that it must be in, and what must be typed.
fn tpm2(token: &Value, details: &mut Map<String, Value>) -> String {
    let [pcrs, signed] = ["tpm2-pcrs", "tpm2_pubkey_pcrs"].map(|list| numbers(&token[list]));
    let [is_locked, has_pin] = ["tpm2_pcrlock", "tpm2-pin"].map(|flag| token[flag] == true);
    details.insert("pcrs".into(), json!(pcrs));
    let bank = in_bank(keep(token, "tpm2-pcr-bank", details, "pcr_bank"));
    keep(token, "tpm2-primary-alg", details, "primary_algorithm");
    keep(token, "tpm2-policy-hash", details, "policy_hash");
    if !signed.is_empty() {
        details.insert("signed_pcrs".into(), json!(signed));
    }
    details.insert("pcrlock".into(), is_locked.into());
    details.insert("pin".into(), has_pin.into());
    let mut words = "a TPM 2.0".to_owned();
    if !pcrs.is_empty() {
        words += &format!(", with PCRs {}{bank} as they were", list(&pcrs));
    }
    if !signed.is_empty() {
        words += &format!(", with signed values of PCRs {}", list(&signed));
    }
    if is_locked {
        words += ", with a policy of systemd-pcrlock";
    }
    if has_pin {
        words += ", with a PIN";
    }
    words
}

fn in_bank(bank: Option<&str>) -> String {
    bank.map_or_else(String::new, |bank| format!(" ({bank})"))
}

/// A security key, and what its owner must do.
fn fido2(token: &Value, details: &mut Map<String, Value>) -> String {
    let mut words = "a FIDO2 security key".to_owned();
    for (member, name, what) in [
        ("fido2-clientPin-required", "pin", "its PIN"),
        ("fido2-up-required", "presence", "a touch"),
        (
            "fido2-uv-required",
            "verification",
            "a fingerprint or another local check",
        ),
    ] {
        if let Some(required) = token[member].as_bool() {
            details.insert(name.into(), required.into());
            if required {
                words += &format!(", with {what}");
            }
        }
    }
    keep(token, "fido2-rp", details, "relying_party");
    words
}

/// The clevis policy in the protected header of a JWE.
fn policy(protected: &str) -> Option<Value> {
    let bytes = URL_SAFE_NO_PAD
        .decode(protected.trim_end_matches('='))
        .ok()?;
    let mut header: Value = serde_json::from_slice(&bytes).ok()?;
    let policy = header.get_mut("clevis")?.take();
    policy.is_object().then_some(policy)
}

/// The policies that one of `sss` shares the key among.
fn shared(policy: &Value) -> Vec<Value> {
    let shares = policy["sss"]["jwe"].as_array().into_iter().flatten();
    let headers = shares.filter_map(|share| share.as_str()?.split('.').next());
    headers.take(MOST_PARTS).filter_map(self::policy).collect()
}

/// A policy of clevis in words.
fn clevis(of: &Value, depth: u32) -> String {
    let pin = of["pin"].as_str().unwrap_or("an unknown policy");
    match pin {
        "tang" => match of["tang"]["url"].as_str() {
            Some(url) => format!("the Tang server {url}"),
            None => "a Tang server".to_owned(),
        },
        "tpm2" => {
            let bank = in_bank(of["tpm2"]["pcr_bank"].as_str());
            match of["tpm2"]["pcr_ids"].as_str() {
                Some(pcrs) => format!("a TPM 2.0 with PCRs {pcrs}{bank} as they were"),
                None => "a TPM 2.0".to_owned(),
            }
        }
        "sss" if depth < MOST_DEPTH => {
            let parts: Vec<_> = shared(of)
                .iter()
                .map(|part| clevis(part, depth + 1))
                .collect();
            let needed = of["sss"]["t"].as_u64().unwrap_or(1);
            format!("{needed} of ({})", parts.join("; "))
        }
        other => other.to_owned(),
    }
}

/// The public part of a clevis policy, without its keys.
fn public(of: &Value, depth: u32) -> Value {
    let mut told = Map::new();
    told.insert("pin".into(), of["pin"].clone());
    for (pin, member) in [
        ("tang", "url"),
        ("tpm2", "pcr_ids"),
        ("tpm2", "pcr_bank"),
        ("sss", "t"),
    ] {
        if let Some(value) = of[pin].get(member).filter(|value| !value.is_object()) {
            told.insert(member.into(), value.clone());
        }
    }
    if depth < MOST_DEPTH {
        let parts = shared(of);
        if !parts.is_empty() {
            let parts = parts.iter().map(|part| public(part, depth + 1));
            told.insert("of".into(), parts.collect());
        }
    }
    Value::Object(told)
}

fn numbers(list: &Value) -> Vec<u64> {
    let values = list.as_array().into_iter().flatten();
    values.filter_map(Value::as_u64).collect()
}

fn list(numbers: &[u64]) -> String {
    let texts: Vec<_> = numbers.iter().map(u64::to_string).collect();
    texts.join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(token: &Value) -> (Option<String>, Value) {
        let kind = token["type"].as_str().unwrap();
        let (words, details) = said(kind, token).unzip();
        (words, details.map_or(Value::Null, Value::Object))
    }

    #[test]
    fn systemds_tokens() {
        for (token, expected, told) in [
            (
                json!({
                    "type": "systemd-tpm2", "keyslots": ["1"], "tpm2-blob": "AAAA",
                    "tpm2-pcrs": [0, 7], "tpm2-pcr-bank": "sha256", "tpm2-primary-alg": "ecc",
                    "tpm2-policy-hash": "1d26", "tpm2-pin": true, "tpm2_pubkey_pcrs": [11],
                    "tpm2_pcrlock": false, "tpm2_salt": "c2FsdA==",
                }),
                "a TPM 2.0, with PCRs 0+7 (sha256) as they were, with signed values of PCRs 11, \
                 with a PIN",
                json!({
                    "pcrs": [0, 7], "pcr_bank": "sha256", "primary_algorithm": "ecc",
                    "policy_hash": "1d26", "signed_pcrs": [11], "pcrlock": false, "pin": true,
                }),
            ),
            (
                json!({
                    "type": "systemd-fido2", "keyslots": ["2"], "fido2-credential": "AAAA",
                    "fido2-salt": "c2FsdA==", "fido2-rp": "io.systemd.cryptsetup",
                    "fido2-clientPin-required": true, "fido2-up-required": true,
                    "fido2-uv-required": false,
                }),
                "a FIDO2 security key, with its PIN, with a touch",
                json!({
                    "pin": true, "presence": true, "verification": false,
                    "relying_party": "io.systemd.cryptsetup",
                }),
            ),
            (
                json!({"type": "systemd-pkcs11", "pkcs11-uri": "pkcs11:token=a", "pkcs11-key": "AA"}),
                "a PKCS#11 token or smartcard, pkcs11:token=a",
                json!({"uri": "pkcs11:token=a"}),
            ),
            (
                json!({"type": "systemd-recovery"}),
                "a recovery key, typed as a passphrase",
                json!({}),
            ),
            (
                json!({"type": "luks2-keyring", "key_description": "my:key"}),
                "a passphrase in the kernel's keyring, `my:key`",
                json!({"key_description": "my:key"}),
            ),
        ] {
            assert_eq!(words(&token), (Some(expected.to_owned()), told));
        }
        assert_eq!(words(&json!({"type": "another"})), (None, Value::Null));
    }

    fn protected(clevis: Value) -> String {
        URL_SAFE_NO_PAD.encode(json!({"alg": "dir", "clevis": clevis}).to_string())
    }

    #[test]
    fn policies_of_clevis() {
        let tang =
            json!({"pin": "tang", "tang": {"url": "http://tang.example", "adv": {"keys": ["k"]}}});
        let tpm = json!({"pin": "tpm2", "tpm2": {"pcr_bank": "sha256", "pcr_ids": "7", "jwk_priv": "private"}});
        let shares = [&tang, &tpm].map(|of| format!("{}..iv.text.tag", protected(of.clone())));
        let sss = json!({"pin": "sss", "sss": {"t": 2, "p": "prime", "jwe": shares}});
        let token = |policy: &Value| json!({"type": "clevis", "jwe": {"protected": protected(policy.clone())}});
        let (words_of, details) = words(&token(&sss));
        let expected = "clevis: 2 of (the Tang server http://tang.example; a TPM 2.0 with PCRs 7 \
                        (sha256) as they were)";
        assert_eq!(words_of.as_deref(), Some(expected));
        for hidden in ["private", "keys", "prime"] {
            assert!(!details.to_string().contains(hidden), "{details}");
        }
        let expected = "clevis: the Tang server http://tang.example";
        assert_eq!(words(&token(&tang)).0.as_deref(), Some(expected));
    }

    /// Policies that are nested without end, and members that are not policies.
    #[test]
    fn any_token_has_an_answer() {
        let mut policy = json!({"pin": "sss", "sss": {"t": 1, "jwe": []}});
        for _ in 0..8 {
            let share = format!("{}..", protected(policy));
            policy = json!({"pin": "sss", "sss": {"t": 1, "jwe": [share.clone(), share]}});
        }
        let deep = json!({"type": "clevis", "jwe": {"protected": protected(policy)}});
        assert!(words(&deep).0.unwrap().len() < 4096);
        for jwe in [
            json!(null),
            json!([]),
            json!({"protected": 3}),
            json!({"protected": "?"}),
        ] {
            let token = json!({"type": "clevis", "jwe": jwe});
            assert_eq!(words(&token).0.as_deref(), Some("clevis"));
        }
        for kind in [
            "systemd-tpm2",
            "systemd-fido2",
            "systemd-pkcs11",
            "luks2-keyring",
        ] {
            let odd = json!({"type": kind, "tpm2-pcrs": {"a": []}, "fido2-rp": 3, "pkcs11-uri": [], "key_description": null});
            assert!(words(&odd).0.is_some());
        }
    }
}
