//! The failure taxonomy without PHP: the cost of a classification apart from the engine's own part.

#![allow(missing_docs, clippy::unwrap_used, reason = "benches are programs of their own")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use nrllm_runtime::domain::failure::{KnownType, Throwable, classify, error_class};

/// A constructed throwable: its type and code, and the number of fallback chains that wrap it.
#[derive(Clone, Copy)]
struct Described {
    known: Option<KnownType>,
    code: Option<i64>,
    chains: u32,
}

impl Throwable for Described {
    fn known_type(&self) -> Option<KnownType> {
        if self.chains > 0 { Some(KnownType::FallbackChainExhausted) } else { self.known }
    }
    fn code(&self) -> Option<i64> {
        self.code
    }
    fn retry_after(&self) -> Option<i64> {
        None
    }

    fn last_attempt(self) -> Option<Self> {
        self.chains.checked_sub(1).map(|chains| Self { chains, ..self })
    }
}

fn classification(criterion: &mut Criterion) {
    let plain = Described { known: None, code: Some(503), chains: 0 };
    let response =
        Described { known: Some(KnownType::ProviderResponse), code: Some(429), chains: 0 };
    let mut group = criterion.benchmark_group("classify");
    group.bench_function("plain", |bencher| bencher.iter(|| classify(black_box(plain))));
    group.bench_function("response", |bencher| bencher.iter(|| classify(black_box(response))));
    group.bench_function("chain of 1000", |bencher| {
        bencher.iter(|| classify(black_box(Described { chains: 1_000, ..response })))
    });
    group.finish();

    let mut group = criterion.benchmark_group("error_class");
    let long = "Vendor\\Package\\".repeat(40);
    for (name, class) in [
        ("short", "RuntimeException"),
        ("anonymous", "class@anonymous\0/var/www/site/file.php:12$0"),
        ("too long", &long),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| error_class(black_box(class.as_bytes())))
        });
    }
    group.finish();
}

criterion_group!(benches, classification);
criterion_main!(benches);
