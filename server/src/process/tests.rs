use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

use super::*;

struct Sink<F>(F);

impl<F: FnMut(&str) + Send> OutputSink for Sink<F> {
    fn take<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        (self.0)(text);
        Box::pin(std::future::ready(()))
    }
}

async fn run_shell(
    command: &ShellCommand,
    cancel: &CancellationToken,
    on_output: impl FnMut(&str) + Send,
) -> io::Result<ShellEnd> {
    super::run_shell(command, cancel, &mut Sink(on_output)).await
}

async fn execute_bash(
    command: &ShellCommand,
    cancel: &CancellationToken,
    on_delta: impl FnMut(&str) + Send,
) -> io::Result<BashResult> {
    super::execute_bash(command, cancel, &mut Sink(on_delta)).await
}

fn command(text: &str) -> ShellCommand {
    ShellCommand {
        command: text.to_owned(),
        cwd: std::env::temp_dir(),
        env: Vec::new(),
        shell: ShellSettings::default(),
        timeout: None,
    }
}

async fn run(text: &str) -> (ShellEnd, String) {
    let mut output = String::new();
    let end =
        run_shell(&command(text), &CancellationToken::new(), |text| output.push_str(text)).await.unwrap();
    (end, output)
}

fn pid_of(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Waits until a killed process is gone: a process of someone else's is reaped by init.
async fn wait_until_gone(pid: Pid) {
    let stat = format!("/proc/{}/stat", pid.as_raw_pid());
    while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stdout_and_stderr_come_in_the_order_they_were_written() {
    let (end, output) = run("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done").await;
    assert_eq!(end, ShellEnd::Exited(0));
    assert_eq!(output, "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
}

#[tokio::test]
async fn a_command_leads_a_group_and_where_possible_a_session() {
    let (_, output) = run("echo $$; cut -d' ' -f5,6 /proc/$$/stat").await;
    let (pid, group_and_session) = output.trim().split_once('\n').unwrap();
    let session = group_and_session.strip_prefix(&format!("{pid} ")).unwrap();
    assert!(SETSID.is_none() || session == pid);
}

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    assert_eq!(run("exit 3").await.0, ShellEnd::Exited(3));
    assert_eq!(run("exit 300").await.0, ShellEnd::Exited(44));
    assert_eq!(run("kill -9 $$").await.0, ShellEnd::Exited(137));
    assert_eq!(run("kill -TERM $$").await.0, ShellEnd::Exited(143));
    assert_eq!(run("exec >&-; exec 2>&-; exit 3").await.0, ShellEnd::Exited(3));
}

#[tokio::test]
async fn cat_returns_at_once_as_stdin_is_empty() {
    assert_eq!(run("cat").await, (ShellEnd::Exited(0), String::new()));
}

#[tokio::test]
async fn bytes_that_are_no_utf8_become_replacement_characters() {
    let (_, output) = run(r"printf '\xef\xbb\xbfx\xffy\xc3'; sleep 0.05; printf '\xa9z\xe2\x82'").await;
    assert_eq!(output, "x\u{fffd}yéz\u{fffd}");
}

#[tokio::test]
async fn variables_are_added_and_removed() {
    let mut command = command("echo \"$ADDED${HOME-none}\"");
    command.env = vec![("ADDED".into(), Some("a ".into())), ("HOME".into(), None)];
    command.shell.command_prefix = Some("echo first".into());
    let mut output = String::new();
    run_shell(&command, &CancellationToken::new(), |text| output.push_str(text)).await.unwrap();
    assert_eq!(output, "first\na none\n");
}

#[tokio::test]
async fn a_missing_shell_and_a_missing_directory_are_errors_that_name_them() {
    let cancel = CancellationToken::new();
    let mut no_shell = command("true");
    no_shell.shell.path = Some("/no/such/sh".into());
    let error = run_shell(&no_shell, &cancel, |_| ()).await.unwrap_err();
    assert_eq!(error.to_string(), "Custom shell path not found: /no/such/sh");
    let mut no_folder = command("true");
    no_folder.cwd = "/no/such/folder".into();
    let error = run_shell(&no_folder, &cancel, |_| ()).await.unwrap_err();
    assert_eq!(error.to_string(), "working directory does not exist: /no/such/folder");
    let mut no_program = command("true");
    no_program.shell.path = Some("/etc/passwd".into());
    let error = run_shell(&no_program, &cancel, |_| ()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot run /etc/passwd: "), "{error}");
}

#[tokio::test]
async fn a_background_process_that_holds_the_pipe_delays_nothing_and_is_gone_at_the_end() {
    let (end, output) = run("sleep 1000 & echo $!").await;
    assert_eq!(end, ShellEnd::Exited(0));
    wait_until_gone(pid_of(&output)).await;
}

#[tokio::test]
async fn output_of_a_background_process_right_after_the_end_is_kept() {
    let (_, output) = run("(sleep 0.02; echo late) & echo early").await;
    assert_eq!(output, "early\nlate\n");
}

#[tokio::test]
async fn a_background_process_that_never_stops_writing_delays_the_end_only_shortly() {
    let mut bytes = 0;
    let (command, cancel) = (command("yes & echo started"), CancellationToken::new());
    let end = run_shell(&command, &cancel, |text| bytes += text.len()).await;
    assert_eq!(end.unwrap(), ShellEnd::Exited(0));
    assert!(bytes > 0);
}

/// Cancels a command once it printed process ids, and waits until those processes are gone.
async fn cancel_and_check(text: &str, ids: usize) {
    let cancel = CancellationToken::new();
    let mut output = String::new();
    let end = run_shell(&command(text), &cancel, |text| {
        output.push_str(text);
        if output.lines().count() == ids && output.ends_with('\n') {
            cancel.cancel();
        }
    })
    .await
    .unwrap();
    assert_eq!(end, ShellEnd::Cancelled);
    for line in output.lines() {
        wait_until_gone(pid_of(line)).await;
    }
}

#[tokio::test]
async fn cancelling_kills_the_shell_its_children_and_grandchildren() {
    cancel_and_check("echo $$; bash -c 'echo $$; sleep 1000 & echo $!; wait' & wait", 3).await;
}

#[tokio::test]
async fn cancelling_kills_processes_that_left_the_group_and_lost_their_parent() {
    cancel_and_check("setsid sh -c 'echo $$; exec sleep 1000' & wait", 1).await;
    cancel_and_check("(setsid sh -c 'echo $$; exec sleep 1000' &) ; sleep 1000", 1).await;
}

#[tokio::test]
async fn a_timeout_kills_and_keeps_the_output_so_far() {
    let mut slow = command("trap '' TERM; echo before; sleep 1000 & wait");
    slow.timeout = Some(Duration::from_millis(300));
    let mut output = String::new();
    let end = run_shell(&slow, &CancellationToken::new(), |text| output.push_str(text)).await.unwrap();
    assert_eq!((end, output.as_str()), (ShellEnd::TimedOut, "before\n"));
}

#[tokio::test]
async fn a_cancelled_token_starts_nothing() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = run_shell(&command("echo x"), &cancel, |_| panic!("it ran")).await.unwrap();
    assert_eq!(end, ShellEnd::Cancelled);
}

#[tokio::test]
async fn dropping_the_call_kills_the_tree() {
    let (send, receive) = mpsc::channel();
    let call = tokio::spawn(async move {
        run_shell(&command("sleep 1000 & echo $!; wait"), &CancellationToken::new(), |text| {
            send.send(text.to_owned()).unwrap();
        })
        .await
    });
    let pid = loop {
        match receive.try_recv() {
            Ok(text) => break pid_of(&text),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert!(test_kill_process(pid).is_ok());
    call.abort();
    wait_until_gone(pid).await;
}

/// Kills the commands of the whole process, so the test runs in one of its own.
#[tokio::test]
#[ignore = "run by the_trees_of_all_commands_are_killed_at_the_end_of_the_daemon"]
async fn kill_all_in_a_process_of_its_own() {
    let cancel = CancellationToken::new();
    let commands = [command("sleep 1000 & echo $!; wait"), command("setsid sleep 1000 & echo $!; wait")];
    let mut pids = Vec::new();
    let (send, receive) = mpsc::channel();
    let senders = [send.clone(), send];
    let calls = commands
        .iter()
        .zip(senders)
        .map(|(command, send)| run_shell(command, &cancel, move |text| send.send(pid_of(text)).unwrap()));
    let kill = async {
        while pids.len() < 2 {
            pids.extend(receive.try_iter());
            tokio::task::yield_now().await;
        }
        kill_all();
    };
    let (ends, ()) = tokio::join!(futures::future::join_all(calls), kill);
    for end in ends {
        assert_eq!(end.unwrap(), ShellEnd::Exited(137));
    }
    for pid in pids {
        wait_until_gone(pid).await;
    }
}

#[test]
fn the_trees_of_all_commands_are_killed_at_the_end_of_the_daemon() {
    let name = "process::tests::kill_all_in_a_process_of_its_own";
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    let output = test.args(["--exact", name, "--ignored"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn the_users_command_has_clean_output_and_a_file_for_a_long_one() {
    let mut deltas = String::new();
    let cancel = CancellationToken::new();
    let long = command(r"printf '\033[31ma\r\n\033[0m'; seq 1 20000; exit 2");
    let result = execute_bash(&long, &cancel, |text| deltas.push_str(text)).await.unwrap();
    assert_eq!((result.exit_code, result.cancelled, result.truncated), (Some(2), false, true));
    assert!(result.output.starts_with("18001\n") && result.output.ends_with("\n20000"));
    let path = result.full_output_path.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), deltas);
    assert!(deltas.starts_with("a\n1\n2\n"));
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn a_cancelled_command_of_the_user_has_its_output_and_no_exit_code() {
    let cancel = CancellationToken::new();
    let result =
        execute_bash(&command("echo start; sleep 1000"), &cancel, |_| cancel.cancel()).await.unwrap();
    let expected = BashResult { output: "start\n".into(), cancelled: true, ..BashResult::default() };
    assert_eq!(result, expected);
}
