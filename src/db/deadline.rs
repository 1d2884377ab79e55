//! The time limit of a connection's statements.
//!
//! A timer per statement would be set and cancelled for every heartbeat, and would hardly ever fire. One timer stays set instead: a
//! statement that ends in time leaves it as it is, and a timer that fires before the limit of the current statement is set again.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::task::{unconstrained, yield_now};
use tokio::time::{Instant, Sleep, sleep_until};

use super::socket_wait::Socket;

/// A timer that stays set.
pub(crate) struct StatementDeadline {
    timer: Pin<Box<Sleep>>,
}

impl StatementDeadline {
    /// A timer on the runtime that runs this.
    pub(crate) fn new() -> Self {
        Self { timer: Box::pin(sleep_until(Instant::now())) }
    }

    /// Waits for the work, for `limit` at most, and where a socket is given on that. `None`: the time is up.
    pub(crate) async fn bounded<T>(
        &mut self,
        limit: Duration,
        mut socket: Option<Socket>,
        work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let timer = &mut self.timer;
        let deadline = Instant::now() + limit;
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        // A connection's runtime has nothing else to do. Without this, work that has done much would be made to pause although it could go
        // on, and a pause before a request is sent must not be taken for waiting for its reply.
        let mut work = pin!(unconstrained(work));
        let mut again = pin!(yield_now());
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            // Once: what is still missing after the first bytes of a reply is waited for in the runtime.
            if let Some(socket) = socket.take()
                && socket.wait(limit)
            {
                // The runtime looks at its sockets without waiting, and comes back.
                let _ = again.as_mut().poll(context);
                return Poll::Pending;
            }
            while timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test)
    }

    #[test]
    fn each_call_is_bounded_by_its_own_limit() {
        run(async {
            let mut alarm = StatementDeadline::new();
            for (before, limit) in [(1, 40), (40, 1), (3_600_000, 20), (20, 20)] {
                // Ends at once, and leaves the timer where it is.
                assert_eq!(
                    alarm.bounded(Duration::from_millis(before), None, pin!(ready(7))).await,
                    Some(7)
                );
                let limit = Duration::from_millis(limit);
                let started = Instant::now();
                assert_eq!(alarm.bounded(limit, None, pin!(pending::<()>())).await, None);
                assert!(started.elapsed() >= limit);
                // A timer that was left on an hour away would hang the test here.
            }
        });
    }

    #[test]
    fn a_longer_limit_replaces_an_earlier_shorter_one() {
        run(async {
            let mut alarm = StatementDeadline::new();
            assert_eq!(
                alarm.bounded(Duration::from_millis(5), None, pin!(ready(()))).await,
                Some(())
            );
            let slow = tokio::time::sleep(Duration::from_millis(30));
            assert_eq!(alarm.bounded(Duration::from_secs(60), None, pin!(slow)).await, Some(()));
        });
    }
}
