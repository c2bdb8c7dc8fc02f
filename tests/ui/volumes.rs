//! Volumes: shown, opened, backed up and exported.

use super::measure::is;
use super::secrets::assert_nowhere;
use super::{
    MEASURED, PASSPHRASE, Ui, assert_no_errors, create, encoded, go, has, path, sandbox, text,
};
use testkit::browser::Browser;
use testkit::{in_both_browsers, noise};

in_both_browsers! {
    a_volume_is_shown_opened_backed_up_and_exported,
    a_file_is_found_by_clicks,
}

/// A server beside a volume with some bytes in it.
fn beside_a_volume(bytes: &[u8]) -> Ui {
    let sandbox = sandbox();
    create(&sandbox, "volume.img");
    sandbox.write("bytes", bytes);
    sandbox.volume("import volume.img --input bytes --passphrase-file line");
    Ui::serve(sandbox)
}

fn a_volume_is_shown_opened_backed_up_and_exported(browser: &mut Browser) {
    let bytes = noise(1 << 20, 5);
    let ui = beside_a_volume(&bytes);
    let before = ui.sandbox.read("volume.img");
    ui.open(browser, "volumes");
    browser.type_text("#open [name=path]", &path(&ui, "volume.img"));
    go(browser, "#open button", "volume");
    let info = text(browser, "#info");
    let told = String::from_utf8(ui.sandbox.volume("info volume.img")).unwrap();
    for line in told.lines().filter(|line| !line.contains("volume.img")) {
        assert!(info.contains(line.trim()), "{line}: {info}");
    }

    for (passphrase, opens) in [("a wrong one: 4207", false), (PASSPHRASE, true)] {
        browser.type_text("#unlock [name=passphrase]", passphrase);
        go(browser, "#unlock button", "open");
        let refused = has(browser, "#outcome.refused");
        let outcome = text(browser, "#outcome");
        assert_eq!(refused, !opens, "{outcome}");
        assert!(!outcome.contains(passphrase), "{outcome}");
        // The header is still there, and no field holds what was typed.
        assert_eq!(text(browser, "#info"), info);
        let fields = "[...document.querySelectorAll('[type=password]')].map(field => field.value)";
        assert!(browser.texts(fields).iter().all(String::is_empty));
    }
    assert_no_errors(browser, "opening");

    let header = path(&ui, "volume.header");
    browser.type_text("#backup [type=text]", &header);
    go(browser, "#backup button", "backup");
    assert!(
        !has(browser, "#outcome.refused"),
        "{}",
        text(browser, "#outcome")
    );
    ui.sandbox
        .volume("header backup volume.img --output expected.header");
    assert!(ui.sandbox.read("volume.header") == ui.sandbox.read("expected.header"));
    // A file that is there is kept.
    browser.type_text("#backup [type=text]", &path(&ui, "bytes"));
    go(browser, "#backup button", "backup");
    assert!(has(browser, "#outcome.refused"));
    assert!(ui.sandbox.read("bytes") == bytes);

    export(browser, &ui, &bytes);
    assert!(
        ui.sandbox.read("volume.img") == before,
        "the volume was only read"
    );
    assert_nowhere(&ui, PASSPHRASE);
}

/// Exports the volume with the wrong and with the right passphrase.
fn export(browser: &mut Browser, ui: &Ui, bytes: &[u8]) {
    for (passphrase, end) in [("a wrong one: 4207", "Failed"), (PASSPHRASE, "Done")] {
        ui.open(
            browser,
            &format!("volume?path={}", encoded(ui, "volume.img")),
        );
        browser.type_text("#export [name=passphrase]", passphrase);
        browser.type_text("#export [type=text]", &path(ui, "plain"));
        go(browser, "#export button", "watch");
        assert_eq!(
            browser.eval("document.querySelectorAll('progress').length"),
            1
        );
        browser.wait_for(&is(&[end]), MEASURED);
        assert_eq!(ui.sandbox.path("plain").exists(), end == "Done");
        if end == "Failed" {
            assert!(text(browser, "#messages").contains("passphrase"));
        }
        assert!(!text(browser, "body").contains(passphrase));
    }
    assert_no_errors(browser, "exporting");
    let plain = ui.sandbox.read("plain");
    assert!(plain.starts_with(bytes), "other bytes were exported");
    ui.sandbox
        .volume("export volume.img --output expected --passphrase-file line");
    assert!(plain == ui.sandbox.read("expected"));
}

fn a_file_is_found_by_clicks(browser: &mut Browser) {
    let ui = beside_a_volume(b"some bytes");
    ui.open(browser, "volumes");
    go(browser, "main a[href^='files?at=']", "files");
    let folder = encoded(&ui, "");
    ui.open(browser, &format!("files?at={folder}"));
    go(
        browser,
        "main a[href^='volume?path='][href$='volume.img']",
        "volume",
    );
    assert!(text(browser, "#info").contains("aes"));
    // What is no volume says so, and offers nothing that could harm it.
    ui.open(browser, &format!("files?at={folder}"));
    go(
        browser,
        "main a[href^='volume?path='][href$='tiny.toml']",
        "volume",
    );
    assert!(has(browser, "#info.refused"));
    assert_no_errors(browser, "files");
}
