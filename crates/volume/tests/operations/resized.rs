//! Volumes made longer and shorter.

use super::stopped::{Ending, Left, work};
use super::{Bench, MIB, ONE, is_tcrypt, options, outcome, secret, text};
use block::{BlockDevice, RamDevice};
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::operate::{Change, Options, resize, unwatched};
use cryptmark_volume::{Files, Format, Opener, Place};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Changes the JSON of both copies of a LUKS2 header.
pub fn forge(image: &mut [u8], edit: impl Fn(&mut Value)) {
    for copy in image[..32 << 10].chunks_exact_mut(16 << 10) {
        let end = copy[4096..].iter().position(|byte| *byte == 0).unwrap();
        let mut json: Value = serde_json::from_slice(&copy[4096..][..end]).unwrap();
        edit(&mut json);
        copy[4096..].fill(0);
        let text = json.to_string();
        copy[4096..][..text.len()].copy_from_slice(text.as_bytes());
        copy[448..512].fill(0);
        let checksum = Sha256::digest(&*copy);
        copy[448..480].copy_from_slice(&checksum);
    }
}

/// Resizes `v`, on a device if that is meant.
fn to(bench: &Bench, bytes: u64, (options, on_device): (&Options, bool)) -> String {
    let path = bench.path("v");
    let one = secret(ONE);
    let one = options.format.is_some_and(is_tcrypt).then_some(&one);
    if !on_device {
        let mut place = Place::open(&path, None, Use::ChangeLayout).unwrap();
        return outcome(resize(&mut place, bytes, one, options, &unwatched));
    }
    let image = bench.read("v");
    let device = Arc::new(RamDevice::new(image.len() as u64));
    device.write_at(0, &image).unwrap();
    let mut place = Place::of(device.clone(), None);
    let said = outcome(resize(&mut place, bytes, one, options, &unwatched));
    let mut after = vec![0; image.len()];
    device.read_at(0, &mut after).unwrap();
    fs::write(path, after).unwrap();
    said
}

/// What is resized, to how many sectors of 512 bytes, what is refused then, and the length of the
/// data if all losses are accepted.
const SIZES: &str = "
luks1 file | 4096 | 2097152 bytes are not the header's 2097152 plus whole sectors of 512 |
luks1 file | 4097 | cut-off: would lose the last 2096640 bytes, from byte 2097664 on, which | 512
luks1 file | 8191 | cut-off: would lose the last 512 bytes, from byte 4193792 on, which | 2096640
luks1 file | 8192 | | 2097152
luks1 file | 9000 | | 2510848
luks2 file | 4096 | 2097152 bytes are not the header's 2097152 plus whole sectors of 512 |
luks2 file | 4097 | cut-off: would lose the last 2096640 bytes, from byte 2097664 on, which | 512
luks2 file | 8192 | | 2097152
luks2 file | 9000 | | 2510848
luks2 device | 8192 | the size of the device cannot be changed |
luks2 device | 5000 | the size of the device cannot be changed |
luks2 fixed file | 5120 | cut-off: would lose the last 524288 bytes, from byte 2621440 on, which | 524288
luks2 fixed file | 6144 | | 1048576
luks2 fixed file | 7168 | | 1572864
luks2 fixed file | 8192 | | 2097152
luks2 fixed file | 9000 | | 2510848
luks2 fixed file with data | 5120 | and the 1048576 bytes behind the volume, which would be cut off | 524288
luks2 fixed file with data | 6144 | behind: holds data behind the volume, from byte 3145728 on | 1048576
luks2 fixed file with data | 7168 | behind: holds data behind the volume, from byte 3145728 on | 1572864
luks2 fixed device with data | 5120 | cut-off: would lose the last 524288 bytes, from byte 2621440 on, which | 524288
luks2 fixed device with data | 7168 | | 1572864
luks2 fixed device with data | 7169 | behind: holds data behind the volume, from byte 3145728 on | 1573376
luks2 fixed device with data | 8192 | behind: holds data behind the volume, from byte 3145728 on | 2097152
luks2 fixed device with data | 8193 | the size of the device cannot be changed |
veracrypt file | 4095 | a VeraCrypt volume cannot become smaller |
veracrypt file | 4096 | | 1835008
veracrypt file | 4097 | | 1835520
veracrypt file | 8192 | | 3932160
tcrypt longer file with data | 4096 | a TrueCrypt volume cannot become smaller |
tcrypt longer file with data | 6144 | behind: holds data behind the volume, from byte 2097152 on | 2883584
tcrypt longer file with data | 8192 | behind: holds data behind the volume, from byte 2097152 on | 3932160
tcrypt longer device | 4096 | the size of the device cannot be changed |
tcrypt longer device | 8192 | the size of the device cannot be changed |
tcrypt longer device | 6144 | | 2883584
";

/// The image of such a volume: with data of 1 MiB of the 2 MiB that there are, if they are `fixed`.
fn image(sound: &[u8], words: &[&str]) -> Vec<u8> {
    let mut image = sound.to_vec();
    if words.contains(&"fixed") {
        forge(&mut image, |json| {
            json["segments"]["0"]["size"] = "1048576".into()
        });
        image[3 << 20..].fill(0);
    }
    if words.contains(&"longer") {
        image.resize(3 << 20, 0);
    }
    if words.contains(&"data") {
        let end = image.len() - (1 << 19);
        image[end] = 1;
    }
    image
}

#[test]
fn a_volume_has_the_size_that_is_possible() {
    let mut bench = Bench::new();
    let mut format = Format::Plain;
    let mut sound = Vec::new();
    for line in SIZES.lines().skip(1) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [what, sectors, refused, done] = cells[..] else {
            panic!("{line}")
        };
        let words: Vec<&str> = what.split(' ').collect();
        if format.name() != words[0] {
            format = Format::named(words[0]).unwrap();
            bench = Bench::volume(format);
            sound = bench.read("v");
        }
        let on_device = words.contains(&"device");
        let image = image(&sound, &words);
        let bytes = sectors.parse::<u64>().unwrap() * 512;
        for accepted in [&[][..], &State::ALL] {
            bench.write("v", &image);
            let said = to(&bench, bytes, (&options(format, accepted), on_device));
            let now = bench.read("v");
            let is_refused = !refused.is_empty() && (accepted.is_empty() || done.is_empty());
            if is_refused {
                assert!(said.contains(refused), "{line}: {said}");
                assert!(now == image, "{line}");
                continue;
            }
            assert_eq!(said, done, "{line}");
            let volume = bench.open("v", None, format, false, ONE).unwrap();
            assert_eq!(volume.size().to_string(), done, "{line}");
            let mut start = vec![0; volume.size().min(MIB) as usize];
            volume.read_at(0, &mut start).unwrap();
            assert!(start == text(start.len() as u64), "{line}");
            let size = if on_device { image.len() as u64 } else { bytes };
            assert_eq!(now.len() as u64, size, "{line}");
        }
        let odd = to(&bench, 6 * MIB + 1, (&options(format, &State::ALL), false));
        assert!(odd.parse::<u64>().is_err(), "{line}: {odd}");
    }
}

/// A growth that fails leaves the file as long as it was, so that the copy is found at its end.
#[test]
fn a_growth_that_fails_is_taken_back() {
    let bench = Bench::volume(Format::Tcrypt);
    let image = bench.read("v");
    for left in 0.. {
        bench.write("v", &image);
        let device = Files.open(&bench.path("v"), Use::ChangeLayout).unwrap();
        let mut place = Place::of(
            Arc::new(Ending {
                device,
                left: Left::new(left),
                is_killed: false,
            }),
            None,
        );
        let options = options(Format::Tcrypt, &[]);
        let said = resize(
            &mut place,
            3 * MIB,
            Some(&secret(ONE)),
            &options,
            &unwatched,
        );
        drop(place);
        for backup in [false, true] {
            let parameters = cryptmark_volume::Parameters {
                tcrypt_backup: backup,
                ..super::parameters(Format::Tcrypt, false)
            };
            let options = cryptmark_volume::OpenOptions {
                format: Some(Format::Tcrypt),
                parameters,
                ..Default::default()
            };
            let opened =
                cryptmark_volume::Volume::open(&bench.path("v"), Some(&secret(ONE)), &options);
            assert!(opened.is_ok(), "{left} {backup}: {said:?}");
        }
        if said.is_ok() {
            assert!(left > 2);
            break;
        }
    }
}

/// What lies where the header says, and what names a volume has that are no LUKS.
#[test]
fn only_what_the_header_describes_is_resized() {
    let bench = Bench::volume(Format::Luks2);
    let (path, header) = (bench.path("v"), bench.path("h"));
    bench.part();
    let image = bench.read("v");
    let resized = |accepted: &[State], to| {
        let mut place = Place::open(&path, Some(&header), Use::ChangeLayout).unwrap();
        outcome(resize(
            &mut place,
            to,
            None,
            &options(Format::Luks2, accepted),
            &unwatched,
        ))
    };
    // Something at the start of the data that is not encrypted.
    let mut other = image.clone();
    other[2 << 20..(2 << 20) + 4096].fill(0);
    other[(2 << 20) + 4086..(2 << 20) + 4096].copy_from_slice(b"SWAPSPACE2");
    bench.write("v", &other);
    let said = "unencrypted: holds swap space, which would not be there if the data were encrypted \
                this way";
    bench.ends("a name", said, false, || resized(&[], 5 * MIB));
    assert_eq!(
        resized(&[State::Unencrypted], 5 * MIB),
        (3 * MIB).to_string()
    );
    // Only the header's own place.
    bench.write("v", &image[..2 << 20]);
    assert_eq!(resized(&[], 5 * MIB), (3 * MIB).to_string());
    // A header of its own, with another volume key.
    let bytes = bench.read("h");
    bench.write("v", &bytes);
    work(
        &bench,
        (Change::Anew, false),
        &options(Format::Luks2, &[]),
        &Left::new(u32::MAX),
    )
    .unwrap();
    let said = resized(&State::ALL, 5 * MIB);
    assert!(
        said.starts_with("other-header: begins with a header of its own"),
        "{said}"
    );
    // Formats without a header.
    bench.write("v", vec![7; 1 << 20]);
    for (format, words) in [
        (
            Some(Format::Plain),
            "a plain volume is as large as its file",
        ),
        (None, "this has no signature of a volume"),
    ] {
        let mut place = Place::open(&path, None, Use::ChangeLayout).unwrap();
        let options = Options {
            format,
            ..Options::default()
        };
        let said = outcome(resize(&mut place, 2 * MIB, None, &options, &unwatched));
        assert!(said.contains(words), "{said}");
    }
    let mut place = Place::open(&path, None, Use::ChangeLayout).unwrap();
    let said = resize(
        &mut place,
        2 * MIB,
        None,
        &options(Format::Tcrypt, &[]),
        &unwatched,
    );
    assert!(matches!(said, Err(super::VolumeError::NoSecret { .. })));
}

/// Of a file, every byte that is stored behind a volume counts.
#[test]
fn one_byte_in_a_long_file_is_found() {
    const AT: u64 = 777 * MIB;
    let bench = Bench::volume(Format::Tcrypt);
    let file = fs::File::options()
        .write(true)
        .open(bench.path("v"))
        .unwrap();
    file.set_len(1024 * MIB).unwrap();
    let grown = |accepted: &[State]| {
        let mut place = Place::open(&bench.path("v"), None, Use::ChangeLayout).unwrap();
        let options = options(Format::Tcrypt, accepted);
        outcome(resize(
            &mut place,
            1025 * MIB,
            Some(&secret(ONE)),
            &options,
            &unwatched,
        ))
    };
    let zeros = vec![0; 3 << 20];
    file.write_all_at(&zeros, AT - (3 << 20)).unwrap();
    file.write_all_at(&[7], AT).unwrap();
    let said = grown(&[]);
    assert!(said.starts_with("behind: "), "{said}");
    file.write_all_at(&[0], AT).unwrap();
    assert_eq!(grown(&[]), (1025 * MIB - 256 * 1024).to_string());
}
