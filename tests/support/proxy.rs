//! A proxy between a client and the server that breaks one exchange at a time, exactly where the
//! test requests it.
//!
//! It parses enough of the MySQL protocol to find the end of a reply and the text of a prepared
//! statement. One thread serves one connection, one command after the other: it reads the command,
//! looks for a rule that matches it, forwards the command, reads the whole reply, and forwards
//! that. Rules are tried in the order in which they were added, and each applies a number of times.
//! What a rule holds waits until the test releases it, so no test depends on time.
//!
//! TLS and compression are removed from the server's greeting, since the proxy cannot read them.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::PATIENCE;
use super::server::Endpoint;

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A statement in the text protocol.
    Query,
    /// The preparation of a statement.
    Prepare,
    /// A prepared statement; its text is that of its `Prepare`.
    Execute,
    /// The closing of a prepared statement; it has no reply.
    CloseStatement,
    /// The quit packet; it has no reply.
    Quit,
    Ping,
    /// `COM_RESET_CONNECTION`.
    Reset,
    Other(u8),
}

/// A command as a rule sees it.
#[derive(Debug, Clone)]
pub struct Command {
    /// The connection's number, counted from 0 in the order of connecting.
    pub connection: usize,
    pub kind: Kind,
    /// The statement's text; empty where the command has none.
    pub sql: String,
}

impl Command {
    /// True for what runs a statement on the server: a query, or an execution of a prepared
    /// statement.
    pub fn is_statement(&self) -> bool {
        matches!(self.kind, Kind::Query | Kind::Execute)
    }
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// No reply belongs to the command.
    Nothing,
    /// An OK packet from the server: the rows affected as the server counted them, and the info
    /// text it sent.
    Ok { affected: u64, info: String },
    /// So many rows (of the last result, where there are several), or the answer to a `Prepare`.
    Rows(usize),
    /// The server refused with this error number.
    Refused(u16),
    /// A rule kept the command from the server.
    NotSent,
}

/// One exchange, as it went between the proxy and the server.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub command: Command,
    pub outcome: Outcome,
}

/// What a rule does to an exchange it matches.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The server never sees the command; the client sees its connection end.
    CutBefore,
    /// The server has executed the command; the client sees its connection end in place of the
    /// reply.
    CutAfter,
    /// As `CutAfter`, but this many bytes of the reply arrive.
    CutWithin(usize),
    /// The command waits in the proxy until the rule is released (or the proxy ends).
    HoldRequest,
    /// The server has executed the command; the reply waits until the rule is released.
    HoldReply,
    /// The command is passed on after this time: a slow network. No test may need it to be exact.
    DelayRequest(Duration),
    /// The reply is passed on after this time.
    DelayReply(Duration),
    /// The server never sees the command, and the client never gets an answer; the connection stays
    /// open.
    Silence,
    /// The server has executed the command; these bytes arrive in place of the reply, as they are,
    /// without a packet header.
    Garbage(Vec<u8>),
    /// The server has executed the command; one packet with this payload arrives in place of the
    /// reply.
    Payload(Vec<u8>),
    /// The server never sees the command; the client gets this error.
    Refuse(u16),
    /// The server has executed the command; the client gets this error all the same.
    RefuseAfter(u16),
    /// The server gets this statement in place of a query or of the text to prepare: it looks like
    /// another server then.
    Instead(String),
    /// No fault; the rule only counts.
    Watch,
}

impl Fault {
    fn is_after(&self) -> bool {
        match self {
            Self::CutBefore
            | Self::HoldRequest
            | Self::DelayRequest(_)
            | Self::Silence
            | Self::Refuse(_)
            | Self::Instead(_) => false,
            Self::CutAfter
            | Self::CutWithin(_)
            | Self::HoldReply
            | Self::DelayReply(_)
            | Self::Garbage(_)
            | Self::Payload(_)
            | Self::RefuseAfter(_)
            | Self::Watch => true,
        }
    }
}

/// How a new connection is handled.
#[derive(Debug, Clone)]
pub enum Welcome {
    /// Accepted and closed at once.
    Cut,
    /// Accepted, without a greeting.
    Silence,
    /// An error in place of the greeting, as in 1040, too many connections.
    Refuse(u16),
    /// These bytes in place of the greeting.
    Garbage(Vec<u8>),
    /// Closed when the client has sent its credentials.
    CutAtLogin,
    /// As a server: nothing but counting.
    Serve,
}

/// Whether the login requests a count of matched rows, whatever the client requested; some proxies
/// do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundRows {
    AsAsked,
    On,
    Off,
    Flipped,
}

/// How the info text of OK packets is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Info {
    Keep,
    Drop,
    /// In another language: every letter is replaced, the numbers stay.
    Translate,
    Replace(String),
}

/// What went through the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub commands: usize,
    /// Queries and executions of prepared statements.
    pub statements: usize,
    pub prepares: usize,
    pub closed_statements: usize,
    /// Commands that a reply belongs to.
    pub round_trips: usize,
    pub bytes_to_server: usize,
    pub bytes_to_client: usize,
}

impl Count {
    /// What was added since an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            commands: self.commands - earlier.commands,
            statements: self.statements - earlier.statements,
            prepares: self.prepares - earlier.prepares,
            closed_statements: self.closed_statements - earlier.closed_statements,
            round_trips: self.round_trips - earlier.round_trips,
            bytes_to_server: self.bytes_to_server - earlier.bytes_to_server,
            bytes_to_client: self.bytes_to_client - earlier.bytes_to_client,
        }
    }

    fn add(&mut self, other: Self) {
        self.commands += other.commands;
        self.statements += other.statements;
        self.prepares += other.prepares;
        self.closed_statements += other.closed_statements;
        self.round_trips += other.round_trips;
        self.bytes_to_server += other.bytes_to_server;
        self.bytes_to_client += other.bytes_to_client;
    }
}

/// Which commands a rule is for.
pub struct When {
    matches: Box<dyn Fn(&Command) -> bool + Send>,
    skip: usize,
    times: usize,
}

impl When {
    /// The statements (query or execution) whose text contains this, upper and lower case alike.
    pub fn statement(part: &str) -> Self {
        let part = part.to_ascii_uppercase();
        Self::command(move |command| {
            command.is_statement() && command.sql.to_ascii_uppercase().contains(&part)
        })
    }

    /// Any statement; with [`When::nth`], the nth from now on.
    pub fn any_statement() -> Self {
        Self::command(Command::is_statement)
    }

    /// The preparing of a statement whose text contains this.
    pub fn prepare(part: &str) -> Self {
        let part = part.to_ascii_uppercase();
        Self::command(move |command| {
            command.kind == Kind::Prepare && command.sql.to_ascii_uppercase().contains(&part)
        })
    }

    /// Any command that a reply belongs to; with [`When::nth`], the nth round trip from now on.
    pub fn any_command() -> Self {
        Self::command(|command| !matches!(command.kind, Kind::CloseStatement | Kind::Quit))
    }

    pub fn command(matches: impl Fn(&Command) -> bool + Send + 'static) -> Self {
        Self { matches: Box::new(matches), skip: 0, times: 1 }
    }

    /// Only from the nth match on (1 is the first).
    pub fn nth(mut self, n: usize) -> Self {
        self.skip = n.checked_sub(1).expect("the first match is number 1");
        self
    }

    /// For this many matches; a rule is for one unless it says so.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }
}

struct Armed {
    when: When,
    fault: Fault,
    id: usize,
}

#[derive(Default)]
struct RuleState {
    hits: usize,
    released: bool,
}

struct State {
    rules: Vec<Armed>,
    rule_states: Vec<RuleState>,
    welcomes: Vec<(Welcome, usize)>,
    found_rows: FoundRows,
    info: Info,
    log: Vec<Exchange>,
    counts: Vec<Count>,
    open: usize,
    streams: HashMap<usize, [TcpStream; 2]>,
    ending: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    server: SocketAddr,
}

/// A running proxy; it ends, with all its connections, when this is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    endpoint: Endpoint,
    listener: Option<JoinHandle<()>>,
}

/// A rule that was added: counts its matches, and releases what it holds.
pub struct Rule {
    shared: Arc<Shared>,
    id: usize,
}

impl Rule {
    /// Returns how often it has matched.
    pub fn hits(&self) -> usize {
        self.shared.lock().rule_states[self.id].hits
    }

    /// Waits until it has matched at least once.
    pub fn wait(&self) {
        self.wait_for(1);
    }

    pub fn wait_for(&self, hits: usize) {
        self.shared.wait("a rule that matches", |state| state.rule_states[self.id].hits >= hits);
    }

    /// Releases what it holds, now and from now on.
    pub fn release(&self) {
        self.shared.lock().rule_states[self.id].released = true;
        self.shared.changed.notify_all();
    }

    /// Removes the rule and releases what it holds.
    pub fn cancel(self) {
        self.shared.lock().rules.retain(|rule| rule.id != self.id);
        self.release();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A failed assertion in one thread must not hide its message behind those of the others.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[track_caller]
    fn wait(&self, what: &str, done: impl Fn(&State) -> bool) {
        let (state, timeout) =
            self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !done(state)).unwrap();
        let log = if timeout.timed_out() { format!("{:#?}", state.log) } else { String::new() };
        drop(state);
        assert!(
            !timeout.timed_out(),
            "timed out waiting for {what}; what went through the proxy: {log}"
        );
    }
}

impl Proxy {
    /// A proxy to this server, without any rule.
    pub fn start(server: &Endpoint) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the proxy listens");
        let address = listener.local_addr().expect("the proxy's address");
        let endpoint = Endpoint {
            host: "127.0.0.1".to_owned(),
            port: address.port(),
            socket: None,
            ..server.clone()
        };
        let server = SocketAddr::new(
            server.host.parse().expect("the server's address is numeric"),
            server.port,
        );
        let state = State {
            rules: Vec::new(),
            rule_states: Vec::new(),
            welcomes: Vec::new(),
            found_rows: FoundRows::AsAsked,
            info: Info::Keep,
            log: Vec::new(),
            counts: Vec::new(),
            open: 0,
            streams: HashMap::new(),
            ending: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), server });
        let accepting = Arc::clone(&shared);
        let handle = thread::spawn(move || accept(&accepting, &listener));
        Self { shared, address, endpoint, listener: Some(handle) }
    }

    /// Where the client under test connects to. Only over TCP.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Adds a rule behind the others. The first that matches and is not spent decides about a
    /// command.
    pub fn rule(&self, when: When, fault: Fault) -> Rule {
        let mut state = self.shared.lock();
        let id = state.rule_states.len();
        state.rule_states.push(RuleState::default());
        state.rules.push(Armed { when, fault, id });
        Rule { shared: Arc::clone(&self.shared), id }
    }

    /// Removes all rules and releases what they hold.
    pub fn heal(&self) {
        let mut state = self.shared.lock();
        state.rules.clear();
        state.welcomes.clear();
        for rule in &mut state.rule_states {
            rule.released = true;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Handles the next `times` connections like this.
    pub fn welcome(&self, welcome: Welcome, times: usize) {
        self.shared.lock().welcomes.push((welcome, times));
    }

    /// For connections made from now on.
    pub fn found_rows(&self, found_rows: FoundRows) {
        self.shared.lock().found_rows = found_rows;
    }

    /// For replies from now on.
    pub fn info(&self, info: Info) {
        self.shared.lock().info = info;
    }

    /// Ends every open connection, as a server that is restarted does.
    pub fn cut_all(&self) {
        let state = self.shared.lock();
        for stream in state.streams.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.wait("the end of all connections", |state| state.open == 0);
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().counts.len()
    }

    /// How many of them are open.
    pub fn open_connections(&self) -> usize {
        self.shared.lock().open
    }

    /// Waits until this many connections were made.
    pub fn wait_for_connections(&self, made: usize) {
        self.shared.wait("a number of connections", |state| state.counts.len() >= made);
    }

    /// Waits until this many connections are open.
    pub fn wait_for_open(&self, open: usize) {
        self.shared.wait("a number of open connections", |state| state.open == open);
    }

    /// Waits until the exchanges so far fulfil a condition.
    pub fn wait_for_log(&self, done: impl Fn(&[Exchange]) -> bool) {
        self.shared.wait("an exchange", |state| done(&state.log));
    }

    /// What went through, over all connections.
    pub fn count(&self) -> Count {
        let mut sum = Count::default();
        for count in &self.shared.lock().counts {
            sum.add(*count);
        }
        sum
    }

    pub fn count_of(&self, connection: usize) -> Count {
        self.shared.lock().counts[connection]
    }

    /// Every exchange so far, in the order in which they ended.
    pub fn log(&self) -> Vec<Exchange> {
        self.shared.lock().log.clone()
    }

    /// The texts of the statements so far (queries and executions).
    pub fn statements(&self) -> Vec<String> {
        let log = self.log();
        log.into_iter()
            .filter(|exchange| exchange.command.is_statement())
            .map(|exchange| exchange.command.sql)
            .collect()
    }

    /// Clears the log (the counts stay).
    pub fn clear_log(&self) {
        self.shared.lock().log.clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ending = true;
        for stream in state.streams.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Makes the listener return from accept(); it ends when its connections have ended.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut threads = Vec::new();
    for client in listener.incoming() {
        let mut state = shared.lock();
        if state.ending {
            break;
        }
        let Ok(client) = client else { continue };
        let number = state.counts.len();
        state.counts.push(Count::default());
        let welcome = match state.welcomes.first_mut() {
            None => Welcome::Serve,
            Some((welcome, times)) => {
                let welcome = welcome.clone();
                *times = times.saturating_sub(1);
                if *times == 0 {
                    state.welcomes.remove(0);
                }
                welcome
            }
        };
        // Registered before its thread runs, so that ending the proxy always finds it.
        let Ok(copy) = client.try_clone() else {
            continue;
        };
        let Ok(server) = TcpStream::connect(shared.server) else {
            // The server is gone: the client sees its connection end.
            continue;
        };
        let Ok(server_copy) = server.try_clone() else {
            continue;
        };
        state.streams.insert(number, [copy, server_copy]);
        state.open += 1;
        drop(state);
        shared.changed.notify_all();
        let shared = Arc::clone(shared);
        threads.push(thread::spawn(move || {
            let _ = client.set_nodelay(true);
            let _ = server.set_nodelay(true);
            let mut link = Link {
                shared: Arc::clone(&shared),
                number,
                client,
                server,
                statements: HashMap::new(),
                format: Format::default(),
            };
            // An error here is the end of one of the two sockets, by a fault or by the client.
            let _ = link.serve(&welcome);
            let _ = link.client.shutdown(Shutdown::Both);
            let _ = link.server.shutdown(Shutdown::Both);
            let mut state = shared.lock();
            state.streams.remove(&number);
            state.open -= 1;
            drop(state);
            shared.changed.notify_all();
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// How the two sides agreed to write their packets.
#[derive(Default, Clone, Copy)]
struct Format {
    deprecate_eof: bool,
    session_track: bool,
    /// MariaDB leaves out column definitions that the client has already; a byte behind the column
    /// count says so.
    cached_metadata: bool,
}

/// One packet: its header's sequence number, and its payload.
struct Packet {
    sequence: u8,
    payload: Vec<u8>,
}

impl Packet {
    fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            stream.read_exact(&mut header)?;
            let length =
                usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            let start = payload.len();
            payload.resize(start + length, 0);
            stream.read_exact(&mut payload[start..])?;
            // A payload of 16 MiB or more continues in the next packet.
            if length < 0xFF_FFFF {
                return Ok(Self { sequence: header[3], payload });
            }
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let parts = self.payload.len() / 0xFF_FFFF + 1;
        let first = self.sequence.wrapping_sub((parts - 1) as u8);
        for part in 0..parts {
            let start = part * 0xFF_FFFF;
            let end = self.payload.len().min(start + 0xFF_FFFF);
            let length = (end - start) as u32;
            out.extend_from_slice(&length.to_le_bytes()[..3]);
            out.push(first.wrapping_add(part as u8));
            out.extend_from_slice(&self.payload[start..end]);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 4);
        self.write(&mut out);
        out
    }

    fn first(&self) -> u8 {
        self.payload.first().copied().unwrap_or(0xFF)
    }

    /// The end of rows: an EOF packet, or the OK packet in its place.
    fn ends_rows(&self) -> bool {
        self.first() == 0xFE && self.payload.len() < 0xFF_FFFF
    }

    fn is_error(&self) -> bool {
        self.first() == 0xFF
    }
}

/// The whole reply to a command.
struct Reply {
    packets: Vec<Packet>,
    outcome: Outcome,
}

struct Link {
    shared: Arc<Shared>,
    number: usize,
    client: TcpStream,
    server: TcpStream,
    statements: HashMap<u32, String>,
    format: Format,
}

/// Ends a connection's loop from within.
fn cut() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionAborted)
}

impl Link {
    fn serve(&mut self, welcome: &Welcome) -> io::Result<()> {
        match welcome {
            Welcome::Cut => return Ok(()),
            Welcome::Silence => return self.until_client_leaves(),
            Welcome::Refuse(code) => {
                // Before the capabilities are known an error carries no SQLSTATE.
                let mut payload = vec![0xFF];
                payload.extend_from_slice(&code.to_le_bytes());
                payload.extend_from_slice(b"refused by the proxy");
                self.send_client(&Packet { sequence: 0, payload }.bytes())?;
                return self.until_client_leaves();
            }
            Welcome::Garbage(bytes) => {
                self.send_client(bytes)?;
                return self.until_client_leaves();
            }
            Welcome::CutAtLogin | Welcome::Serve => {}
        }
        self.log_in(matches!(welcome, Welcome::CutAtLogin))?;
        loop {
            self.exchange()?;
        }
    }

    /// Reads and ignores, so that the client alone decides how long this goes on.
    fn until_client_leaves(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1024];
        while self.client.read(&mut buffer)? > 0 {}
        Ok(())
    }

    /// Ends the connection to the server, which is idle, before the client sees its end: what the
    /// client does next never meets the locks of the transaction that was open.
    fn cut(&mut self) -> io::Error {
        let ended = self.server.shutdown(Shutdown::Write).and_then(|()| {
            self.server.set_read_timeout(Some(PATIENCE))?;
            io::copy(&mut self.server, &mut io::sink())
        });
        ended.err().unwrap_or_else(cut)
    }

    fn log_in(&mut self, cut_here: bool) -> io::Result<()> {
        let mut greeting = Packet::read(&mut self.server)?;
        if !greeting.is_error() {
            mask_greeting(&mut greeting.payload)?;
        }
        self.send_client(&greeting.bytes())?;
        let mut login = Packet::read(&mut self.client)?;
        if cut_here {
            return Err(cut());
        }
        let found_rows = self.shared.lock().found_rows;
        self.format = rewrite_login(&mut login.payload, found_rows)?;
        self.send_server(&login.bytes())?;
        loop {
            let packet = Packet::read(&mut self.server)?;
            self.send_client(&packet.bytes())?;
            match packet.first() {
                0x00 => return Ok(()),
                0xFF => return Err(cut()),
                // "Fast authentication worked": the server goes on by itself.
                0x01 if packet.payload.get(1) == Some(&0x03) && packet.payload.len() == 2 => {}
                _ => {
                    let answer = Packet::read(&mut self.client)?;
                    self.send_server(&answer.bytes())?;
                }
            }
        }
    }

    fn exchange(&mut self) -> io::Result<()> {
        let mut request = Packet::read(&mut self.client)?;
        let command = self.understand(&request.payload)?;
        let (fault, rule) = self.pick(&command);
        // A rule that waits for the reply has fired when the reply is there: then the server has
        // executed the command for certain.
        let after = fault.is_after();
        if !after {
            self.hit(rule);
        }
        match &fault {
            Fault::CutBefore => {
                self.note(command, Outcome::NotSent);
                return Err(self.cut());
            }
            Fault::Silence => {
                self.note(command, Outcome::NotSent);
                return self.until_client_leaves().and(Err(cut()));
            }
            Fault::Refuse(code) => {
                if matches!(code, 1213 | 1020) {
                    // With these the server has rolled the transaction back; the real one must not
                    // keep it open.
                    self.roll_back()?;
                }
                self.note(command, Outcome::NotSent);
                return self.send_client(&error_packet(*code).bytes());
            }
            Fault::HoldRequest => self.hold(rule)?,
            Fault::DelayRequest(time) => self.pause(*time)?,
            Fault::Instead(sql) => {
                assert!(
                    matches!(command.kind, Kind::Query | Kind::Prepare),
                    "a text can be replaced, not {command:?}"
                );
                request.payload.truncate(1);
                request.payload.extend_from_slice(sql.as_bytes());
            }
            _ => {}
        }
        self.send_server(&request.bytes())?;
        if matches!(command.kind, Kind::CloseStatement | Kind::Other(0x18)) {
            self.note(command, Outcome::Nothing);
            return Ok(());
        }
        if command.kind == Kind::Quit {
            self.note(command, Outcome::Nothing);
            return Err(cut());
        }
        let mut reply = self.reply(&command)?;
        self.note(command, reply.outcome.clone());
        if after {
            self.hit(rule);
        }
        match fault {
            Fault::CutAfter => return Err(self.cut()),
            Fault::CutWithin(length) => {
                let mut bytes = reply.bytes();
                bytes.truncate(length);
                self.send_client(&bytes)?;
                return Err(self.cut());
            }
            Fault::HoldReply => self.hold(rule)?,
            Fault::DelayReply(time) => self.pause(time)?,
            Fault::Garbage(bytes) => return self.send_client(&bytes),
            Fault::Payload(payload) => {
                return self.send_client(&Packet { sequence: 1, payload }.bytes());
            }
            Fault::RefuseAfter(code) => return self.send_client(&error_packet(code).bytes()),
            _ => {}
        }
        let info = self.shared.lock().info.clone();
        if info != Info::Keep && matches!(reply.outcome, Outcome::Ok { .. }) {
            for packet in &mut reply.packets {
                rewrite_info(&mut packet.payload, self.format, &info)?;
            }
        }
        self.send_client(&reply.bytes())
    }

    fn understand(&self, payload: &[u8]) -> io::Result<Command> {
        let (&byte, rest) = payload.split_first().ok_or_else(cut)?;
        let id = || rest.get(..4).and_then(|id| id.try_into().ok()).map(u32::from_le_bytes);
        let prepared = || id().and_then(|id| self.statements.get(&id)).cloned().unwrap_or_default();
        let (kind, sql) = match byte {
            0x01 => (Kind::Quit, String::new()),
            0x03 => (Kind::Query, String::from_utf8_lossy(rest).into_owned()),
            0x0E => (Kind::Ping, String::new()),
            0x16 => (Kind::Prepare, String::from_utf8_lossy(rest).into_owned()),
            0x17 => (Kind::Execute, prepared()),
            0x19 => (Kind::CloseStatement, prepared()),
            0x1F => (Kind::Reset, String::new()),
            other => (Kind::Other(other), String::new()),
        };
        Ok(Command { connection: self.number, kind, sql })
    }

    /// The fault for a command, and the rule that it comes from.
    fn pick(&self, command: &Command) -> (Fault, Option<usize>) {
        let mut state = self.shared.lock();
        for rule in &mut state.rules {
            if rule.when.times == 0 || !(rule.when.matches)(command) {
                continue;
            }
            if rule.when.skip > 0 {
                rule.when.skip -= 1;
                continue;
            }
            if rule.when.times != usize::MAX {
                rule.when.times -= 1;
            }
            return (rule.fault.clone(), Some(rule.id));
        }
        (Fault::Watch, None)
    }

    /// Counts a rule that has done, or is about to do, what it is for.
    fn hit(&self, rule: Option<usize>) {
        let Some(rule) = rule else { return };
        self.shared.lock().rule_states[rule].hits += 1;
        self.shared.changed.notify_all();
    }

    fn hold(&self, rule: Option<usize>) -> io::Result<()> {
        let Some(rule) = rule else { return Ok(()) };
        let mut state = self.shared.lock();
        while !state.rule_states[rule].released && !state.ending {
            state =
                self.shared.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if state.ending { Err(cut()) } else { Ok(()) }
    }

    fn pause(&self, time: Duration) -> io::Result<()> {
        let state = self.shared.lock();
        let (state, _) =
            self.shared.changed.wait_timeout_while(state, time, |state| !state.ending).unwrap();
        if state.ending { Err(cut()) } else { Ok(()) }
    }

    fn note(&self, command: Command, outcome: Outcome) {
        let mut state = self.shared.lock();
        let count = &mut state.counts[self.number];
        count.commands += 1;
        count.statements += usize::from(command.is_statement());
        count.prepares += usize::from(command.kind == Kind::Prepare);
        count.closed_statements += usize::from(command.kind == Kind::CloseStatement);
        count.round_trips += usize::from(outcome != Outcome::Nothing);
        state.log.push(Exchange { command, outcome });
        drop(state);
        self.shared.changed.notify_all();
    }

    fn send_client(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.shared.lock().counts[self.number].bytes_to_client += bytes.len();
        self.client.write_all(bytes)
    }

    fn send_server(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.shared.lock().counts[self.number].bytes_to_server += bytes.len();
        self.server.write_all(bytes)
    }

    fn roll_back(&mut self) -> io::Result<()> {
        let payload = b"\x03ROLLBACK".to_vec();
        self.server.write_all(&Packet { sequence: 0, payload }.bytes())?;
        let reply = Packet::read(&mut self.server)?;
        if reply.first() == 0x00 { Ok(()) } else { Err(cut()) }
    }

    /// Reads packets until the reply to this command is whole.
    fn reply(&mut self, command: &Command) -> io::Result<Reply> {
        match command.kind {
            Kind::Prepare => self.prepared(&command.sql),
            Kind::Query | Kind::Execute => self.results(),
            _ => {
                let packet = Packet::read(&mut self.server)?;
                let outcome = outcome(&packet, self.format);
                Ok(Reply { packets: vec![packet], outcome })
            }
        }
    }

    fn prepared(&mut self, sql: &str) -> io::Result<Reply> {
        let first = Packet::read(&mut self.server)?;
        if first.is_error() {
            let outcome = outcome(&first, self.format);
            return Ok(Reply { packets: vec![first], outcome });
        }
        let head: [u8; 9] =
            first.payload.get(..9).and_then(|head| head.try_into().ok()).ok_or_else(cut)?;
        self.statements
            .insert(u32::from_le_bytes([head[1], head[2], head[3], head[4]]), sql.to_owned());
        let columns = usize::from(u16::from_le_bytes([head[5], head[6]]));
        let params = usize::from(u16::from_le_bytes([head[7], head[8]]));
        let mut packets = vec![first];
        for definitions in [params, columns] {
            let end = usize::from(definitions > 0 && !self.format.deprecate_eof);
            for _ in 0..definitions + end {
                packets.push(Packet::read(&mut self.server)?);
            }
        }
        Ok(Reply { packets, outcome: Outcome::Rows(0) })
    }

    fn results(&mut self) -> io::Result<Reply> {
        let mut packets = Vec::new();
        loop {
            let mut rows = 0;
            let first = Packet::read(&mut self.server)?;
            let mut last_outcome = outcome(&first, self.format);
            let mut more = false;
            match first.first() {
                0xFF => packets.push(first),
                0x00 => {
                    more = status(&first.payload).is_some_and(|status| status & MORE_RESULTS != 0);
                    packets.push(first);
                }
                // LOAD DATA LOCAL is not for this proxy.
                0xFB => return Err(cut()),
                _ => {
                    let mut rest = first.payload.as_slice();
                    let columns = length(&mut rest).ok_or_else(cut)?;
                    let skipped = self.format.cached_metadata && rest.first() == Some(&0);
                    packets.push(first);
                    let end = usize::from(!self.format.deprecate_eof);
                    let definitions = if skipped { 0 } else { columns as usize };
                    for _ in 0..definitions + end {
                        packets.push(Packet::read(&mut self.server)?);
                    }
                    loop {
                        let packet = Packet::read(&mut self.server)?;
                        let (ends, error) = (packet.ends_rows(), packet.is_error());
                        if ends {
                            more = end_status(&packet.payload, self.format)
                                .is_some_and(|status| status & MORE_RESULTS != 0);
                            last_outcome = Outcome::Rows(rows);
                        } else if error {
                            last_outcome = outcome(&packet, self.format);
                        } else {
                            rows += 1;
                        }
                        packets.push(packet);
                        if ends || error {
                            break;
                        }
                    }
                }
            }
            if !more {
                return Ok(Reply { packets, outcome: last_outcome });
            }
        }
    }
}

impl Reply {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for packet in &self.packets {
            packet.write(&mut out);
        }
        out
    }
}

const FOUND_ROWS: u32 = 1 << 1;
const COMPRESS: u32 = 1 << 5;
const TLS: u32 = 1 << 11;
const SESSION_TRACK: u32 = 1 << 23;
const DEPRECATE_EOF: u32 = 1 << 24;
const OPTIONAL_METADATA: u32 = 1 << 25;
const ZSTD: u32 = 1 << 26;
const MORE_RESULTS: u16 = 0x0008;
const STATE_CHANGED: u16 = 0x4000;

/// Removes from the greeting what the proxy cannot parse.
fn mask_greeting(payload: &mut [u8]) -> io::Result<()> {
    let version_end = payload.iter().skip(1).position(|byte| *byte == 0).ok_or_else(cut)? + 1;
    // Behind the version: thread id (4), scramble (8), filler (1), lower capabilities (2), charset
    // (1), status (2), upper (2).
    let low = version_end + 1 + 4 + 8 + 1;
    let high = low + 2 + 1 + 2;
    if payload.len() < high + 2 {
        return Err(cut());
    }
    let mut flags = u32::from(u16::from_le_bytes([payload[low], payload[low + 1]]));
    flags |= u32::from(u16::from_le_bytes([payload[high], payload[high + 1]])) << 16;
    flags &= !(COMPRESS | TLS | OPTIONAL_METADATA | ZSTD);
    let bytes = flags.to_le_bytes();
    payload[low..low + 2].copy_from_slice(&bytes[..2]);
    payload[high..high + 2].copy_from_slice(&bytes[2..]);
    Ok(())
}

/// Sets the found-rows flag in the client's login, and reads what was agreed on.
fn rewrite_login(payload: &mut [u8], found_rows: FoundRows) -> io::Result<Format> {
    if payload.len() < 32 {
        return Err(cut());
    }
    let mut flags = u32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]);
    match found_rows {
        FoundRows::AsAsked => {}
        FoundRows::On => flags |= FOUND_ROWS,
        FoundRows::Off => flags &= !FOUND_ROWS,
        FoundRows::Flipped => flags ^= FOUND_ROWS,
    }
    payload[..4].copy_from_slice(&flags.to_le_bytes());
    // A client that speaks to MariaDB leaves the first flag out and has its further flags in the
    // last four filler bytes.
    let further = if flags & 1 == 0 {
        u32::from_le_bytes([payload[28], payload[29], payload[30], payload[31]])
    } else {
        0
    };
    Ok(Format {
        deprecate_eof: flags & DEPRECATE_EOF != 0,
        session_track: flags & SESSION_TRACK != 0,
        cached_metadata: further & (1 << 4) != 0,
    })
}

/// A length-encoded integer; `rest` is what follows it.
fn length(rest: &mut &[u8]) -> Option<u64> {
    let (&first, tail) = rest.split_first()?;
    let width = match first {
        0..=0xFA => {
            *rest = tail;
            return Some(u64::from(first));
        }
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return None,
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(tail.get(..width)?);
    *rest = &tail[width..];
    Some(u64::from_le_bytes(bytes))
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=0xFA) => out.push(short),
        _ => {
            out.push(0xFC);
            out.extend_from_slice(
                &u16::try_from(length).expect("an info text is short").to_le_bytes(),
            );
        }
    }
}

/// An OK packet taken apart: the affected rows, where the fixed part ends, the status flags, the
/// info text and what follows it.
struct OkPacket<'a> {
    affected: u64,
    fixed: usize,
    status: u16,
    info: &'a [u8],
    tail: &'a [u8],
}

fn read_ok(payload: &[u8], format: Format) -> Option<OkPacket<'_>> {
    let mut rest = payload.get(1..)?;
    let affected = length(&mut rest)?;
    length(&mut rest)?;
    let status = u16::from_le_bytes([*rest.first()?, *rest.get(1)?]);
    rest = rest.get(4..)?;
    let fixed = payload.len() - rest.len();
    if !format.session_track || rest.is_empty() {
        return Some(OkPacket { affected, fixed, status, info: strip_length(rest), tail: &[] });
    }
    let size = usize::try_from(length(&mut rest)?).ok()?;
    Some(OkPacket { affected, fixed, status, info: rest.get(..size)?, tail: rest.get(size..)? })
}

/// Without session tracking the text is said to fill the rest of the packet, but servers write its
/// length in front of it all the same.
fn strip_length(rest: &[u8]) -> &[u8] {
    let mut text = rest;
    match length(&mut text) {
        Some(size) if size == text.len() as u64 => text,
        _ => rest,
    }
}

fn status(payload: &[u8]) -> Option<u16> {
    read_ok(payload, Format::default()).map(|ok| ok.status)
}

/// The status flags of the packet that ends rows, which has one of two formats.
fn end_status(payload: &[u8], format: Format) -> Option<u16> {
    if format.deprecate_eof {
        return status(payload);
    }
    Some(u16::from_le_bytes([*payload.get(3)?, *payload.get(4)?]))
}

fn outcome(packet: &Packet, format: Format) -> Outcome {
    match packet.first() {
        0x00 => match read_ok(&packet.payload, format) {
            Some(ok) => Outcome::Ok {
                affected: ok.affected,
                info: String::from_utf8_lossy(ok.info).into_owned(),
            },
            None => Outcome::Rows(0),
        },
        0xFF => match packet.payload.get(1..3) {
            Some(code) => Outcome::Refused(u16::from_le_bytes([code[0], code[1]])),
            None => Outcome::Refused(0),
        },
        _ => Outcome::Rows(0),
    }
}

fn rewrite_info(payload: &mut Vec<u8>, format: Format, info: &Info) -> io::Result<()> {
    if payload.first() != Some(&0x00) {
        return Ok(());
    }
    let ok = read_ok(payload, format).ok_or_else(cut)?;
    let text = match info {
        Info::Keep => ok.info.to_vec(),
        Info::Drop => Vec::new(),
        Info::Translate => ok
            .info
            .iter()
            .map(|byte| if byte.is_ascii_alphabetic() { b'x' } else { *byte })
            .collect(),
        Info::Replace(text) if !ok.info.is_empty() => text.clone().into_bytes(),
        Info::Replace(_) => Vec::new(),
    };
    let mut out = payload[..ok.fixed].to_vec();
    let tracked = format.session_track && ok.status & STATE_CHANGED != 0;
    if !text.is_empty() || tracked {
        push_length(&mut out, text.len());
        out.extend_from_slice(&text);
    }
    out.extend_from_slice(ok.tail);
    *payload = out;
    Ok(())
}

/// An error packet as the first reply to a command.
fn error_packet(code: u16) -> Packet {
    let state: &[u8; 5] = match code {
        1040 => b"08004",
        1047 => b"08S01",
        1054 => b"42S22",
        1064 => b"42000",
        1146 => b"42S02",
        1213 => b"40001",
        1461 => b"42000",
        1792 => b"25006",
        1969 => b"70100",
        3024 => b"HY000",
        _ => b"HY000",
    };
    let mut payload = vec![0xFF];
    payload.extend_from_slice(&code.to_le_bytes());
    payload.push(b'#');
    payload.extend_from_slice(state);
    payload.extend_from_slice(format!("error {code} made by the proxy").as_bytes());
    Packet { sequence: 1, payload }
}

/// Every form of the reply's information text.
pub const INFOS: [Info; 3] = [Info::Keep, Info::Translate, Info::Drop];
/// Every way of counting rows.
pub const MODES: [FoundRows; 4] =
    [FoundRows::AsAsked, FoundRows::On, FoundRows::Off, FoundRows::Flipped];
