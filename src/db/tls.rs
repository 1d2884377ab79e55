//! Which certificates of a server are accepted, and what is reported about the others.
//!
//! The driver has TLS of its own, by rustls, and refuses two kinds of certificates that the
//! settings may allow: without verification those that its parser does not read (X.509 version 1),
//! and with verification a certificate that `ssl_ca` contains itself, where it is marked as an
//! authority's. For these the TLS of [`super::tls_relay`] verifies by the rules of this file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use mysql_async::{ClientIdentity, IoError, SslOpts};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SignatureVerificationAlgorithm,
    SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError,
    RootCertStore, SignatureScheme,
};
use webpki::RawPublicKeyEntity;

use crate::config::connection::Tls;
use crate::error::{Error, Result};

/// The authorities of the system.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The settings with the contents of their files.
pub(super) struct TlsFiles {
    accept_any_certificate: bool,
    ca: Option<Vec<u8>>,
    /// The client's certificate and key.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    pub(super) fn read(settings: &Tls) -> Result<Self> {
        let ca = settings.ca.as_ref().map(|path| read_file("CA", path)).transpose()?;
        let identity = match &settings.identity {
            Some((certificate, key)) => {
                Some((read_file("client certificate", certificate)?, read_file("client key", key)?))
            }
            None => None,
        };
        Ok(Self { accept_any_certificate: settings.accept_any_certificate, ca, identity })
    }

    /// Returns the options for the driver's own TLS.
    pub(super) fn driver_options(&self) -> SslOpts {
        let mut options =
            SslOpts::default().with_danger_accept_invalid_certs(self.accept_any_certificate);
        if let Some(ca) = &self.ca {
            options =
                options.with_root_certs(vec![ca.clone().into()]).with_disable_built_in_roots(true);
        } else if let Ok(bundle) = std::fs::read(SYSTEM_AUTHORITIES) {
            options = options.with_root_certs(vec![bundle.into()]);
        }
        if let Some((certificate, key)) = &self.identity {
            let identity = ClientIdentity::new(certificate.clone().into(), key.clone().into());
            options = options.with_client_identity(Some(identity));
        }
        options
    }

    /// Returns whether the driver has refused a certificate that these settings may allow.
    pub(super) fn may_allow(&self, error: &mysql_async::Error) -> bool {
        let mysql_async::Error::Io(IoError::Io(error)) = error else {
            return false;
        };
        let refusal = error.get_ref().and_then(|error| error.downcast_ref::<TlsError>());
        let Some(TlsError::InvalidCertificate(refusal)) = refusal else {
            return false;
        };
        // Without verification, the driver refuses what it cannot read.
        self.accept_any_certificate || (self.ca.is_some() && is_an_authority(refusal))
    }

    /// Returns the configuration of TLS by the rules of this file.
    pub(super) fn configuration(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let trust = if self.accept_any_certificate {
            Trust::Any
        } else {
            let pinned = certificates(self.ca.as_deref().unwrap_or_default())?;
            let mut roots = RootCertStore::empty();
            for certificate in &pinned {
                roots.add(certificate.clone()).map_err(invalid)?;
            }
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Trust::Authorities { verifier: builder.build().map_err(invalid)?, pinned }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { trust, algorithms }));
        let Some((certificate, key)) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(invalid)?;
        builder.with_client_auth_cert(certificates(certificate)?, key).map_err(invalid)
    }
}

fn read_file(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::configuration(format!(
            "the TLS {what} file {} cannot be read: {error}",
            path.display()
        ))
    })
}

/// Returns the certificates of a file, which is PEM, or one certificate in DER.
fn certificates(file: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_slice_iter(file).collect::<std::result::Result<Vec<_>, _>>();
    let found = found.map_err(invalid)?;
    Ok(if found.is_empty() { vec![CertificateDer::from(file.to_vec())] } else { found })
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Returns whether a certificate was refused because it is marked as an authority's. It was valid
/// at the time of the check, which precedes this refusal.
fn is_an_authority(refusal: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(refusal)) = refusal else {
        return false;
    };
    refusal.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// Which certificates are accepted.
#[derive(Debug)]
enum Trust {
    /// Any: the connection is encrypted, and the server is not authenticated. It must hold the key
    /// of the certificate that it presents.
    Any,
    /// Those issued by the authorities for the host, and those of the file itself that name the
    /// host.
    Authorities { verifier: Arc<WebPkiServerVerifier>, pinned: Vec<CertificateDer<'static>> },
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        let Trust::Authorities { verifier, pinned } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let outcome =
            verifier.verify_server_cert(certificate, intermediates, host, ocsp_response, now);
        match &outcome {
            Err(TlsError::InvalidCertificate(refusal))
                if is_an_authority(refusal) && pinned.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, host)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        if !matches!(self.trust, Trust::Any) {
            return verify_tls12_signature(message, certificate, signed, &self.algorithms);
        }
        let key = public_key(certificate)?;
        let key = RawPublicKeyEntity::try_from(&key).map_err(|_| CertificateError::BadEncoding)?;
        let offered = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        // The scheme does not determine the curve in this version of TLS.
        let algorithms = offered.map_or(&[][..], |(_, algorithms)| *algorithms);
        let fits = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, message, signed.signature()).is_ok()
        };
        if algorithms.iter().any(fits) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        if !matches!(self.trust, Trust::Any) {
            return verify_tls13_signature(message, certificate, signed, &self.algorithms);
        }
        let key = public_key(certificate)?;
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the public key of a certificate of any version.
fn public_key<'a>(
    certificate: &'a CertificateDer<'_>,
) -> std::result::Result<SubjectPublicKeyInfoDer<'a>, TlsError> {
    let key = find_public_key(certificate).ok_or(CertificateError::BadEncoding)?;
    Ok(SubjectPublicKeyInfoDer::from(key))
}

fn find_public_key(certificate: &[u8]) -> Option<&[u8]> {
    /// The tag of the version, which version 1 leaves out.
    const VERSION: u8 = 0xa0;
    let mut fields = Element::first(Element::first(certificate)?.content)?.content;
    if fields.first() == Some(&VERSION) {
        fields = Element::first(fields)?.rest;
    }
    for _ in ["serial number", "signature algorithm", "issuer", "validity", "subject"] {
        fields = Element::first(fields)?.rest;
    }
    Some(Element::first(fields)?.whole)
}

/// An element in DER: a tag of one byte, the length, the content.
struct Element<'a> {
    whole: &'a [u8],
    content: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Element<'a> {
    fn first(input: &'a [u8]) -> Option<Self> {
        let (header, length) = match *input.get(1)? {
            short @ 0..=0x7f => (2, usize::from(short)),
            long => {
                let bytes = usize::from(long & 0x7f);
                let length = input.get(2..2 + bytes).filter(|_| matches!(bytes, 1..=3))?;
                (2 + bytes, length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
            }
        };
        let (whole, rest) = input.split_at_checked(header + length)?;
        Some(Self { whole, content: whole.get(header..)?, rest })
    }
}

/// Returns the remedy for a refusal by the words of the TLS library.
pub(super) fn remedy(words: &str) -> &'static str {
    const REMEDIES: [(&str, &str); 8] = [
        (
            "UnsupportedCertVersion",
            "; the server's certificate is X.509 version 1, which cannot be verified. Issue one of version 3 (openssl x509 -req -extfile, \
             with subjectAltName)",
        ),
        (
            "CaUsedAsEndEntity",
            "; the server presents the certificate of an authority (basicConstraints CA:TRUE, as openssl req -x509 makes it). Issue one \
             with CA:FALSE and set ssl_ca to its authority, or, on Linux, set ssl_ca to a file with this certificate itself",
        ),
        (
            "not valid for",
            "; the certificate must name the host in subjectAltName, the common name (CN) does not count. Issue one that does, or set host \
             to a name in it",
        ),
        (
            "UnknownIssuer",
            "; no trusted authority has signed the server's certificate. Set ssl_ca to the file of the one that has",
        ),
        ("xpired", "; renew the server's certificate"),
        ("not valid yet", "; check the clocks of this machine and of the certificate's authority"),
        ("BadSignature", ACCEPTED),
        ("HandshakeFailure", ACCEPTED),
    ];
    const ACCEPTED: &str = "; the server needs TLS 1.3, or 1.2 with ECDHE, and a key of RSA with 2048 bits or more, ECDSA P-256 or P-384, or \
                            Ed25519";
    REMEDIES.iter().find(|(part, _)| words.contains(part)).map_or("", |(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let bytes = length.to_be_bytes();
        let mut element = vec![tag];
        match length {
            0..=0x7f => element.extend(&bytes[7..]),
            0x80..=0xff => element.extend([&[0x81], &bytes[7..]].concat()),
            _ => element.extend([&[0x82], &bytes[6..]].concat()),
        }
        element.extend(content);
        element
    }

    /// A certificate of this version, with a key of this size.
    fn certificate(version: u8, key: usize) -> (Vec<u8>, Vec<u8>) {
        let key = element(0x30, &vec![7; key]);
        let mut fields = Vec::new();
        if version > 1 {
            fields.extend(element(0xa0, &element(0x02, &[version - 1])));
        }
        fields.extend(element(0x02, &[1; 20]));
        fields.extend([0x30, 0x03, 0x06, 0x01, 0x2a]);
        fields.extend(element(0x30, &[2; 130]));
        fields.extend(element(0x30, &[3; 30]));
        fields.extend(element(0x30, b""));
        fields.extend(&key);
        fields.extend(element(0xa3, &[4; 300]));
        let signed = [element(0x30, &fields), vec![0x30, 0x00, 0x03, 0x00]].concat();
        (element(0x30, &signed), key)
    }

    #[test]
    fn the_key_of_a_certificate_of_any_version_is_found() {
        for version in [1, 3] {
            for size in [0, 90, 200, 600] {
                let (certificate, key) = certificate(version, size);
                assert_eq!(find_public_key(&certificate), Some(&key[..]), "{version}, {size}");
            }
        }
    }

    #[test]
    fn a_damaged_certificate_has_no_key() {
        let (whole, _) = certificate(3, 90);
        for end in 0..whole.len() {
            assert_eq!(find_public_key(&whole[..end]), None, "cut at {end}");
        }
        for length in [0x80, 0x84, 0xff] {
            assert_eq!(find_public_key(&[0x30, length, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            let _ = find_public_key(&damaged);
        }
    }
}
