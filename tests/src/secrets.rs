//! Secrets, and a search for them in output.
//!
//! A process whose whole output is searched writes its secrets into a file: the private keys and
//! passwords that the harness creates, and the tokens that a test reports.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The file into which a process writes its secrets, one a line; without it none are written.
pub const SECRETS_VARIABLE: &str = "QUORLOCK_TEST_SECRETS";

/// The length from which on a part of a longer secret counts as a secret too.
const PART: usize = 12;

/// Records a secret, if this process should.
pub fn note(secret: impl AsRef<[u8]>) {
    let Some(file) = std::env::var_os(SECRETS_VARIABLE) else { return };
    let line = hex(secret.as_ref()) + "\n";
    let file = OpenOptions::new().create(true).append(true).open(file);
    // In one write: threads write at the same time.
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the secret is written down");
}

/// The secrets in that file.
pub fn noted(file: &Path) -> Vec<Vec<u8>> {
    let unhex = |line: &str| {
        let digits = line.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
        digits.map(|pair| byte(pair).expect("hexadecimal digits")).collect()
    };
    fs::read_to_string(file).expect("secrets were written down").lines().map(unhex).collect()
}

/// The texts that show a secret, or a part of it.
pub fn forms(secret: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(secret).ok();
    if let Some(pem) = text.filter(|text| text.starts_with("-----BEGIN ")) {
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let digits = body.as_bytes().chunks_exact(16).map(|part| String::from_utf8_lossy(part).into_owned());
        let der = base64(body.as_bytes());
        let parts = der.windows(PART).step_by(4).flat_map(|part| [hex(part), upper_hex(part), list(part)]);
        return digits.chain(parts).collect();
    }
    let mut forms = vec![hex(secret), upper_hex(secret), list(secret)];
    forms.extend(text.map(str::to_owned));
    forms
}

/// Lines of `output` that show one of the secrets.
pub fn shown<'a>(output: &'a str, secrets: &[Vec<u8>]) -> Vec<&'a str> {
    let forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    output.lines().filter(|line| forms.iter().any(|form| line.contains(form.as_str()))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn upper_hex(bytes: &[u8]) -> String {
    hex(bytes).to_uppercase()
}

/// Bytes in the format of `Debug`, without the brackets.
fn list(bytes: &[u8]) -> String {
    let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
    numbers.join(", ")
}

/// Decodes base 64.
fn base64(digits: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |digit: &u8| DIGITS.iter().position(|known| known == digit);
    let (mut bits, mut count, mut bytes) = (0_usize, 0, Vec::new());
    for value in digits.iter().map_while(value) {
        (bits, count) = (bits << 6 | value, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("eight bits"));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form() {
        let secrets = [b"hunter2".to_vec()];
        for line in ["Login(hunter2)", "68756e74657232", "[104, 117, 110, 116, 101, 114, 50]"] {
            assert_eq!(shown(&format!("before\n{line}\nafter"), &secrets), [line]);
        }
        assert!(shown("hunter1", &secrets).is_empty());
    }

    #[test]
    fn a_part_of_a_private_key_is_found() {
        let key = rcgen::KeyPair::generate().expect("a key can be made");
        let (pem, der) = (key.serialize_pem(), key.serialize_der());
        assert_eq!(
            base64(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>().as_bytes()),
            der
        );
        let body = pem.lines().nth(1).expect("a line of digits");
        for text in [body.to_owned(), hex(&der), upper_hex(&der), format!("{der:?}"), hex(&der[38..60])] {
            assert_eq!(shown(&text, &[pem.clone().into_bytes()]).len(), 1, "{text}");
        }
    }
}
