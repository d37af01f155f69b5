//! Figures of the daemon, beside those of a peer when one is given.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::stream::AssistantMessageEvent;
use sampi_client::{EventItem, RpcClient, RpcClientBuilder, SessionChoice};
use serde_json::json;

use crate::checks::{Profile, build_daemon};
use crate::scratch::Scratch;
use crate::{model_server, sample};

/// How long an idle process is left alone before its memory is read.
const IDLE: Duration = Duration::from_millis(500);

/// How long one step may take before the measuring is given up.
const LIMIT: Duration = Duration::from_secs(120);

struct Options {
    spawns: usize,
    deltas: usize,
    program: Option<PathBuf>,
    peer: Option<String>,
}

/// An agent to measure.
struct Subject {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    /// Whether the program is the whole of it, so that its size says something.
    is_binary: bool,
}

/// What was measured of one agent.
struct Figures {
    start: Duration,
    start_cpu: Duration,
    idle_rss: u64,
    binary: Option<u64>,
    stream: Duration,
    stream_cpu: Duration,
    delta_events: usize,
}

pub(crate) fn run(args: lexopt::Parser) -> anyhow::Result<()> {
    let options = options(args)?;
    let program = match options.program {
        Some(program) => program,
        None => build_daemon(Profile::Release)?,
    };
    let mut subjects = vec![Subject { name: "sampi".to_owned(), program, args: Vec::new(), is_binary: true }];
    if let Some(peer) = options.peer {
        let mut words = peer.split_whitespace().map(str::to_owned);
        let program = words.next().context("--peer names no program")?;
        let args = words.collect();
        subjects.push(Subject { name: "peer".to_owned(), program: program.into(), args, is_binary: false });
    }
    let base_url = model_server::start(options.deltas)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut columns = Vec::new();
    for subject in &subjects {
        println!("measuring {}: {} {}", subject.name, subject.program.display(), subject.args.join(" "));
        let measuring = measure(subject, options.spawns, options.deltas, &base_url);
        let figures =
            runtime.block_on(measuring).with_context(|| format!("measuring {} failed", subject.name))?;
        columns.push((subject.name.as_str(), figures));
    }
    print_table(&columns, options.spawns, options.deltas);
    Ok(())
}

fn options(mut args: lexopt::Parser) -> anyhow::Result<Options> {
    use lexopt::ValueExt;
    let mut options = Options { spawns: 15, deltas: 20_000, program: None, peer: None };
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("spawns") => options.spawns = args.value()?.parse()?,
            lexopt::Arg::Long("deltas") => options.deltas = args.value()?.parse()?,
            lexopt::Arg::Long("program") => options.program = Some(args.value()?.into()),
            lexopt::Arg::Long("peer") => options.peer = Some(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    ensure!(options.spawns > 0, "--spawns must be at least 1");
    Ok(options)
}

async fn measure(subject: &Subject, spawns: usize, deltas: usize, base_url: &str) -> anyhow::Result<Figures> {
    let scratch = Scratch::new()?;
    let model = json!({ "id": "bench", "name": "Bench", "contextWindow": 1_000_000, "maxTokens": 100_000 });
    let provider =
        json!({ "api": "openai-completions", "apiKey": "k", "baseUrl": base_url, "models": [model] });
    let models = json!({ "providers": { "bench": provider } });
    scratch.write(&scratch.config().join("models.json"), &models.to_string())?;
    let builder = || subject.builder(&scratch);

    // The first start fills the caches of the disk.
    start_once(builder()).await?;
    let (mut starts, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..spawns {
        let (start, cpu) = start_once(builder()).await?;
        starts.push(start);
        cpus.push(cpu);
    }

    let agent = builder().spawn().await?;
    let pid = agent.process_id().context("no process")?;
    agent.get_state().with_timeout(LIMIT).await?;
    tokio::time::sleep(IDLE).await;
    let idle_rss = sample::rss(pid)?;

    let (cpu_before, begin) = (sample::cpu(pid)?, Instant::now());
    let streamed = tokio::time::timeout(LIMIT, stream(&agent)).await.context("the run did not settle")??;
    let (stream, stream_cpu) = (begin.elapsed(), sample::cpu(pid)?.saturating_sub(cpu_before));
    let expected = deltas * model_server::DELTA.len();
    ensure!(streamed.bytes == expected, "{} bytes of text came, not {expected}", streamed.bytes);
    agent.stop().await;
    Ok(Figures {
        start: median(starts),
        start_cpu: median(cpus),
        idle_rss,
        binary: subject
            .is_binary
            .then(|| std::fs::metadata(&subject.program))
            .transpose()?
            .map(|file| file.len()),
        stream,
        stream_cpu,
        delta_events: streamed.events,
    })
}

impl Subject {
    fn builder(&self, scratch: &Scratch) -> RpcClientBuilder {
        let builder = RpcClient::builder().program(&self.program).program_args(&self.args);
        scratch.place(builder).provider("bench").model("bench").session(SessionChoice::InMemory)
    }
}

/// Time and CPU from the start of the process to its first answer.
async fn start_once(builder: RpcClientBuilder) -> anyhow::Result<(Duration, Duration)> {
    let begin = Instant::now();
    let agent = builder.spawn().await?;
    agent.get_state().with_timeout(LIMIT).await?;
    let time = begin.elapsed();
    let cpu = sample::cpu(agent.process_id().context("no process")?)?;
    agent.stop().await;
    Ok((time, cpu))
}

/// What came of one long answer.
struct Streamed {
    events: usize,
    bytes: usize,
}

async fn stream(agent: &RpcClient) -> anyhow::Result<Streamed> {
    let mut run = agent.run("go").await?;
    let mut streamed = Streamed { events: 0, bytes: 0 };
    while let Some(item) = run.next().await {
        match &item {
            EventItem::Event(event) => {
                if let SessionEvent::MessageUpdate(update) = &**event
                    && let AssistantMessageEvent::TextDelta(delta) = &update.assistant_message_event
                {
                    streamed.events += 1;
                    streamed.bytes += delta.delta.len();
                }
            }
            EventItem::Lagged(count) => anyhow::bail!("the measuring client lost {count} events"),
            _ => {}
        }
    }
    let outcome = run.outcome().await?;
    ensure!(outcome.is_ok(), "the run failed: {:?}", outcome.error);
    Ok(streamed)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn print_table(columns: &[(&str, Figures)], spawns: usize, deltas: usize) {
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1000.0;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    type Row<'a> = (String, &'a dyn Fn(&Figures) -> Option<f64>);
    let rows: [Row<'_>; 7] = [
        (format!("start to first answer, ms (median of {spawns})"), &|f| Some(milliseconds(&f.start))),
        ("  CPU of it, ms".to_owned(), &|f| Some(milliseconds(&f.start_cpu))),
        ("idle memory (RSS), MB".to_owned(), &|f| Some(megabytes(f.idle_rss))),
        ("binary, MB".to_owned(), &|f| f.binary.map(megabytes)),
        (format!("{deltas} text deltas, ms"), &|f| Some(milliseconds(&f.stream))),
        ("  CPU of it, ms".to_owned(), &|f| Some(milliseconds(&f.stream_cpu))),
        ("  delta events written".to_owned(), &|f| Some(f.delta_events as f64)),
    ];
    print!("\n{:<44}", "");
    for (name, _) in columns {
        print!("{name:>12}");
    }
    println!("{}", if columns.len() > 1 { "       ratio" } else { "" });
    for (name, figure) in rows {
        print!("{name:<44}");
        let values: Vec<Option<f64>> = columns.iter().map(|(_, figures)| figure(figures)).collect();
        for value in &values {
            match value {
                Some(value) => print!("{value:>12.1}"),
                None => print!("{:>12}", "-"),
            }
        }
        if let [Some(ours), Some(theirs)] = values.as_slice()
            && *ours > 0.0
        {
            print!("{:>11.1}x", theirs / ours);
        }
        println!();
    }
}
