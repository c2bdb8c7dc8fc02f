//! The pages on volumes: choose one, see what its header says, open, export, mount, back up.

use super::{page, query};
use crate::figure;
use crate::html::Tab;
use maud::{Markup, html};

/// A volume that is served or mounted, or a folder or file to choose.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The whole path.
    pub path: String,
    /// Its last part, or another name for it.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Whether it is a folder, which holds others.
    pub is_folder: bool,
}

/// The page that begins with volumes.
#[derive(Clone, Debug)]
pub struct Volumes {
    /// What is served or mounted now, as the program tells it.
    pub status: String,
    /// Where to begin to look for files.
    pub folders: Vec<Entry>,
}

impl Volumes {
    /// The page.
    pub fn page(&self) -> String {
        let body = html! {
            p { "LUKS, VeraCrypt, TrueCrypt, BitLocker, FileVault 2 and others, in a file or on a disk. Nothing is changed unless you say so." }
            form id="open" action="volume" method="get" {
                p class="field" {
                    label for="path" { "File or disk" }
                    input type="text" id="path" name="path" required autocomplete="off" spellcheck="false";
                    button class="main" { "Show" }
                }
            }
            h2 { "Choose a file" }
            (list(&self.folders))
            h2 { "Does TRIM reach the disk, and what does it reveal?" }
            form id="trim" action="trim" method="post" {
                p class="field" {
                    label for="mounted" { "Folder of a mounted file system" }
                    input type="text" id="mounted" name="folder" required autocomplete="off" spellcheck="false";
                    button { "Check" }
                }
            }
            h2 { "Open now" }
            pre id="status" tabindex="0" aria-label="Volumes that are open now" { (self.status) }
        };
        page(Tab::Volumes, "Volumes", body)
    }
}

/// The files of a folder, to choose one.
pub fn files(folder: &str, above: Option<&str>, entries: &[Entry], cut: bool) -> String {
    let body = html! {
        p class="meta" { (folder) }
        @if let Some(above) = above {
            p { a href={ "files?" (query(&[("at", above)])) } { "The folder above" } }
        }
        @if entries.is_empty() { p { "Nothing here can be read." } }
        (list(entries))
        @if cut { p class="note" { "There are more: type the path instead." } }
    };
    page(Tab::Volumes, "Choose a file", body)
}

fn list(entries: &[Entry]) -> Markup {
    html! {
        ul class="files" {
            @for entry in entries {
                li {
                    @let (way, key) = if entry.is_folder { ("files", "at") } else { ("volume", "path") };
                    a href={ (way) "?" (query(&[(key, &entry.path)])) } { (figure::one_line(&entry.name)) }
                    " " span class="note" { (entry.about) }
                }
            }
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether it was done.
    pub well: bool,
    /// What the program said.
    pub text: String,
}

/// One volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its path.
    pub path: String,
    /// What its header says.
    pub info: Outcome,
    /// What came of the last form.
    pub outcome: Option<Outcome>,
    /// The folder that output files are proposed in.
    pub folder: String,
}

impl Volume {
    /// The page.
    pub fn page(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let beside = |ending: &str| format!("{}/{name}{ending}", self.folder.trim_end_matches('/'));
        let body = html! {
            p class="meta" { (self.path) }
            @if let Some(outcome) = &self.outcome {
                pre id="outcome" role="status" tabindex="0" class=[(!outcome.well).then_some("refused")] { (outcome.text) }
            }
            h2 { "What its header says" }
            pre id="info" tabindex="0" aria-label="Header" class=[(!self.info.well).then_some("refused")] { (self.info.text) }
            div class="forms" {
                (self.form("unlock", "open", "Open", html! {
                    p class="note" { "Checks the passphrase, and says what the volume holds. The passphrase is not kept." }
                    (passphrase("unlock"))
                }))
                (self.form("mount", "mount", "Mount", html! {
                    p class="note" { "Shows its files in an empty folder, until it is unmounted." }
                    (passphrase("mount"))
                    (text("mount", "folder", "Empty folder", ""))
                    label class="choice" { input type="checkbox" name="read-only" value="yes" checked; span { "Read-only" } }
                }))
                (self.form("umount", "umount", "Unmount", html! {
                    p class="note" { "Writes what is waiting, and takes the mount away." }
                }))
                (self.form("export", "export", "Export", html! {
                    p class="note" { "Writes the decrypted volume to a new file. Nothing there protects it." }
                    (passphrase("export"))
                    (text("export", "output", "New file", &beside(".plain")))
                }))
                (self.form("backup", "backup", "Back up the header", html! {
                    p class="note" { "Copies the header with its key slots to a new file. Keep it as secret as the volume." }
                    (text("backup", "output", "New file", &beside(".header")))
                }))
            }
        };
        page(Tab::Volumes, name, body)
    }

    fn form(&self, id: &str, action: &str, button: &str, fields: Markup) -> Markup {
        html! {
            form id=(id) action=(action) method="post" autocomplete="off" {
                fieldset {
                    legend { (button) }
                    input type="hidden" name="path" value=(self.path);
                    (fields)
                    p { button { (button) } }
                }
            }
        }
    }
}

fn passphrase(form: &str) -> Markup {
    let id = format!("{form}-passphrase");
    html! {
        p class="field" {
            label for=(id) { "Passphrase" }
            input type="password" id=(id) name="passphrase" required autocomplete="off";
        }
    }
}

fn text(form: &str, name: &str, label: &str, value: &str) -> Markup {
    let id = format!("{form}-{name}");
    html! {
        p class="field" {
            label for=(id) { (label) }
            input type="text" id=(id) name=(name) value=(value) required autocomplete="off" spellcheck="false";
        }
    }
}
