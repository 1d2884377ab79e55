//! The failure taxonomy: which class a throwable belongs to, and what follows from it.
//!
//! Classification goes by type, in a fixed order, and never by walking the chain of previous
//! errors. The only thing followed is the list of attempts of an exhausted fallback chain, by its
//! last attempt and without recursion.

/// The namespace of the exceptions that the taxonomy knows.
pub const NAMESPACE: &str = "Netresearch\\NrLlm\\Provider\\Exception";

/// How many nested fallback chains are followed; longer ones (a cycle) are unknown.
pub const MAX_CHAIN: usize = 100_000;

/// The types that the taxonomy tests for with instanceof, in the order of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownType {
    /// `CircuitOpenException`
    CircuitOpen,
    /// `FallbackChainExhaustedException`
    FallbackChainExhausted,
    /// `ProviderConnectionException`
    ProviderConnection,
    /// `Psr\Http\Client\NetworkExceptionInterface`
    Network,
    /// `ProviderConfigurationException`
    ProviderConfiguration,
    /// `ProviderResponseException`
    ProviderResponse,
}

impl KnownType {
    /// All known types, in the order of the tests.
    pub const ALL: [Self; 6] = [
        Self::CircuitOpen,
        Self::FallbackChainExhausted,
        Self::ProviderConnection,
        Self::Network,
        Self::ProviderConfiguration,
        Self::ProviderResponse,
    ];

    /// The fully qualified name of the class or interface.
    #[must_use]
    pub const fn class_name(self) -> &'static str {
        match self {
            Self::CircuitOpen => "Netresearch\\NrLlm\\Provider\\Exception\\CircuitOpenException",
            Self::FallbackChainExhausted => {
                "Netresearch\\NrLlm\\Provider\\Exception\\FallbackChainExhaustedException"
            }
            Self::ProviderConnection => {
                "Netresearch\\NrLlm\\Provider\\Exception\\ProviderConnectionException"
            }
            Self::Network => "Psr\\Http\\Client\\NetworkExceptionInterface",
            Self::ProviderConfiguration => {
                "Netresearch\\NrLlm\\Provider\\Exception\\ProviderConfigurationException"
            }
            Self::ProviderResponse => {
                "Netresearch\\NrLlm\\Provider\\Exception\\ProviderResponseException"
            }
        }
    }
}

/// The properties of a throwable that the taxonomy reads. A boundary implements them for the
/// throwables of its language.
pub trait Throwable: Sized {
    /// The first of [`KnownType::ALL`] that the throwable is an instance of.
    fn known_type(&self) -> Option<KnownType>;
    /// What `getCode()` returns; `None` when that is no integer.
    fn code(&self) -> Option<i64>;
    /// The waiting time that the failure requests, in seconds: the value of a declared int property
    /// `retryAfterSeconds`. `None` where there is none, or it holds no integer.
    fn retry_after(&self) -> Option<i64>;
    /// The error of the last attempt of an exhausted fallback chain; `None` when there is none or
    /// it is not a throwable.
    fn last_attempt(self) -> Option<Self>;
}

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The provider could not be reached.
    Connection,
    /// The provider limits the rate of calls (429).
    RateLimit,
    /// The provider refuses the credentials (401, 403).
    Auth,
    /// The provider is not set up.
    Configuration,
    /// The request is wrong (other 4xx).
    ClientError,
    /// The provider failed (5xx).
    ServerError,
    /// The circuit breaker refused the call.
    CircuitOpen,
    /// Anything else.
    Unknown,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [Self; 8] = [
        Self::Connection,
        Self::RateLimit,
        Self::Auth,
        Self::Configuration,
        Self::ClientError,
        Self::ServerError,
        Self::CircuitOpen,
        Self::Unknown,
    ];

    /// The name of the class, as PHP sees it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::RateLimit => "rateLimit",
            Self::Auth => "auth",
            Self::Configuration => "configuration",
            Self::ClientError => "clientError",
            Self::ServerError => "serverError",
            Self::CircuitOpen => "circuitOpen",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether another attempt may help (rule 25).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Connection | Self::RateLimit | Self::ServerError | Self::CircuitOpen)
    }

    /// Returns whether the failure counts against the provider's circuit breaker (rule 25).
    #[must_use]
    pub const fn trips_circuit(self) -> bool {
        matches!(self, Self::Connection | Self::RateLimit | Self::ServerError)
    }
}

/// The class of a failure and the HTTP status that decided it, if one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The class.
    pub class: FailureClass,
    /// The HTTP status, only where the taxonomy read one and it decided.
    pub http_status: Option<u16>,
    /// The waiting time that the failure requests, in seconds (rule 36). In a fallback chain that
    /// of the last attempt's error, else that of the exception around it.
    pub retry_after_seconds: Option<u64>,
}

impl Classification {
    /// The classification of a failure that carries neither an HTTP status nor a waiting time.
    #[must_use]
    pub const fn of(class: FailureClass) -> Self {
        Self { class, http_status: None, retry_after_seconds: None }
    }
}

/// A failure as the runtime keeps it: its classification and the class name that goes into
/// `error_class`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The classification.
    pub classification: Classification,
    /// The stored name of the error's class (see [`error_class`]).
    pub error_class: String,
}

/// Classifies a throwable by its type (rule 24), and reads its waiting time (rule 36).
#[must_use]
pub fn classify<T: Throwable>(throwable: T) -> Classification {
    let mut current = throwable;
    let mut retry_after_seconds = None;
    for _ in 0..=MAX_CHAIN {
        // A negative waiting time is none.
        let own = current.retry_after().and_then(|seconds| u64::try_from(seconds).ok());
        retry_after_seconds = own.or(retry_after_seconds);
        let classification = match current.known_type() {
            None => Classification::of(FailureClass::Unknown),
            Some(KnownType::CircuitOpen) => Classification::of(FailureClass::CircuitOpen),
            Some(KnownType::ProviderConnection | KnownType::Network) => {
                Classification::of(FailureClass::Connection)
            }
            Some(KnownType::ProviderConfiguration) => {
                Classification::of(FailureClass::Configuration)
            }
            Some(KnownType::ProviderResponse) => by_code(current.code()),
            Some(KnownType::FallbackChainExhausted) => match current.last_attempt() {
                Some(next) => {
                    current = next;
                    continue;
                }
                None => Classification::of(FailureClass::Unknown),
            },
        };
        return Classification { retry_after_seconds, ..classification };
    }
    Classification::of(FailureClass::Unknown)
}

/// The class of a provider's response, by its code.
fn by_code(code: Option<i64>) -> Classification {
    let class = match code {
        Some(401 | 403) => FailureClass::Auth,
        Some(429) => FailureClass::RateLimit,
        Some(500..=599) => FailureClass::ServerError,
        Some(400..=499) => FailureClass::ClientError,
        _ => return Classification::of(FailureClass::Unknown),
    };
    let http_status = code.and_then(|code| u16::try_from(code).ok());
    Classification { http_status, ..Classification::of(class) }
}

/// The class name as it goes into `error_class`: the part before the first NUL byte (the rest of an
/// anonymous class is a server path), bytes that are not UTF-8 replaced by `?`, at most 255
/// characters.
#[must_use]
pub fn error_class(class_name: &[u8]) -> String {
    let name = if class_name.contains(&0) {
        class_name.split(|&byte| byte == 0).next().unwrap_or_default()
    } else {
        class_name
    };
    // Nearly all names are short and UTF-8. As many bytes are never more characters.
    if name.len() <= 255
        && let Ok(name) = std::str::from_utf8(name)
    {
        return name.to_owned();
    }
    let mut stored = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        stored.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            stored.push('?');
        }
    }
    if let Some((end, _)) = stored.char_indices().nth(255) {
        stored.truncate(end);
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A throwable described by hand; a chain holds the error of its last attempt, if any.
    enum Described {
        Of(Option<KnownType>, Option<i64>),
        Waits(KnownType, Option<i64>, Option<Box<Described>>),
        Chain(Option<Box<Described>>),
        Cycle,
    }

    impl Throwable for Described {
        fn known_type(&self) -> Option<KnownType> {
            match self {
                Self::Of(known, _) => *known,
                Self::Waits(known, ..) => Some(*known),
                _ => Some(KnownType::FallbackChainExhausted),
            }
        }
        fn code(&self) -> Option<i64> {
            match self {
                Self::Of(_, code) => *code,
                _ => None,
            }
        }
        fn retry_after(&self) -> Option<i64> {
            match self {
                Self::Waits(_, seconds, _) => *seconds,
                _ => None,
            }
        }
        fn last_attempt(self) -> Option<Self> {
            match self {
                Self::Of(..) => None,
                Self::Waits(.., last) => last.map(|last| *last),
                Self::Chain(last) => last.map(|last| *last),
                Self::Cycle => Some(Self::Cycle),
            }
        }
    }

    fn response(code: i64) -> Described {
        Described::Of(Some(KnownType::ProviderResponse), Some(code))
    }

    #[test]
    fn types_decide_whatever_the_code_is() {
        use FailureClass::*;
        let table = [
            (KnownType::CircuitOpen, CircuitOpen),
            (KnownType::ProviderConnection, Connection),
            (KnownType::Network, Connection),
            (KnownType::ProviderConfiguration, Configuration),
        ];
        for (known, expected) in table {
            // The code of these does not count, even where it looks like a status.
            let classification = classify(Described::Of(Some(known), Some(503)));
            assert_eq!((classification.class, classification.http_status), (expected, None));
        }
        assert_eq!(classify(Described::Of(None, Some(503))).class, Unknown);
    }

    #[test]
    fn responses_go_by_their_code() {
        use FailureClass::*;
        let table = [
            (401, Auth),
            (403, Auth),
            (429, RateLimit),
            (400, ClientError),
            (404, ClientError),
            (499, ClientError),
            (500, ServerError),
            (503, ServerError),
            (599, ServerError),
        ];
        for (code, expected) in table {
            let classification = classify(response(code));
            assert_eq!(classification.class, expected, "{code}");
            assert_eq!(classification.http_status.map(i64::from), Some(code));
        }
        for code in [0, -1, 200, 302, 399, 600, 1_700_000_000, i64::MIN, i64::MAX] {
            let classification = classify(response(code));
            assert_eq!(
                (classification.class, classification.http_status),
                (Unknown, None),
                "{code}"
            );
        }
        assert_eq!(classify(Described::Of(Some(KnownType::ProviderResponse), None)).class, Unknown);
    }

    #[test]
    fn an_exhausted_chain_is_the_class_of_its_last_attempt() {
        let nested =
            Described::Chain(Some(Box::new(Described::Chain(Some(Box::new(response(429)))))));
        let classification = classify(nested);
        assert_eq!(classification.class, FailureClass::RateLimit);
        assert_eq!(classification.http_status, Some(429));
        assert_eq!(classify(Described::Chain(None)).class, FailureClass::Unknown);
    }

    #[test]
    fn the_waiting_time_is_that_of_the_error_that_decides() {
        use KnownType::{CircuitOpen, FallbackChainExhausted};
        let open = |seconds| Described::Waits(CircuitOpen, seconds, None);
        let chain =
            |seconds, last| Described::Waits(FallbackChainExhausted, seconds, Some(Box::new(last)));
        let table = [
            (open(Some(90)), Some(90)),
            (open(Some(0)), Some(0)),
            (open(Some(-1)), None),
            (open(Some(i64::MAX)), Some(i64::MAX as u64)),
            (open(None), None),
            (chain(Some(5), open(Some(90))), Some(90)),
            (chain(Some(5), open(None)), Some(5)),
            (chain(None, open(Some(90))), Some(90)),
            (Described::Waits(FallbackChainExhausted, Some(7), None), Some(7)),
        ];
        for (described, expected) in table {
            assert_eq!(classify(described).retry_after_seconds, expected);
        }
    }

    #[test]
    fn deep_chains_are_followed_and_cycles_end() {
        let mut chain = response(503);
        for _ in 0..50_000 {
            chain = Described::Chain(Some(Box::new(chain)));
        }
        assert_eq!(classify(chain).class, FailureClass::ServerError);
        assert_eq!(classify(Described::Cycle).class, FailureClass::Unknown);
    }

    #[test]
    fn what_is_retried_and_what_trips_the_circuit() {
        use FailureClass::*;
        let retryable: Vec<_> =
            FailureClass::ALL.into_iter().filter(|class| class.is_retryable()).collect();
        assert_eq!(retryable, [Connection, RateLimit, ServerError, CircuitOpen]);
        let trips: Vec<_> =
            FailureClass::ALL.into_iter().filter(|class| class.trips_circuit()).collect();
        assert_eq!(trips, [Connection, RateLimit, ServerError]);
    }

    #[test]
    fn the_stored_class_name() {
        assert_eq!(error_class(b"RuntimeException"), "RuntimeException");
        assert_eq!(
            error_class(b"class@anonymous\0/var/www/secret/path.php:3$0"),
            "class@anonymous"
        );
        assert_eq!(error_class("\u{e9}".repeat(300).as_bytes()), "\u{e9}".repeat(255));
        assert_eq!(error_class(b"Bad\xffName"), "Bad?Name");
        assert_eq!(error_class(b""), "");
    }
}
