use std::fs;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    Leaf(usize),
    Edit(usize, bool),
    Compact(usize),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..6).prop_map(Step::Append),
        2 => any::<usize>().prop_map(Step::Leaf),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(at, omit)| Step::Edit(at, omit)),
        1 => any::<usize>().prop_map(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..40)
}

fn take(session: &mut Session, step: &Step) {
    let known = ids(session);
    let pick = |at: usize| known.get(at % known.len().max(1)).map(|id| EntryId::from(id.as_str()));
    let entry = match step {
        Step::Append(0) => assistant("answer\u{2028}\"\\ é"),
        Step::Append(1) => NewEntry::ModelChange { provider: "p".into(), model_id: "m".into() },
        Step::Append(2) => NewEntry::ThinkingLevelChange { thinking_level: "high".into() },
        Step::Append(3) => NewEntry::SessionInfo { name: Some("n".into()) },
        Step::Append(_) => user("question"),
        Step::Leaf(at) => {
            session.set_leaf(pick(*at).as_ref()).unwrap();
            return;
        }
        Step::Edit(at, omit) => {
            let Some(target_id) = pick(*at) else { return };
            let content = sampi_protocol::data::Content::Text("edited".into());
            NewEntry::ContextEdit { target_id, replacement: (!omit).then_some(content) }
        }
        Step::Compact(at) => NewEntry::Compaction {
            summary: "sum".into(),
            first_kept_entry_id: pick(*at),
            tokens_before: 1,
            details: None,
            usage: None,
            from_hook: None,
            system_message: None,
        },
        Step::Reopen => return,
    };
    put(session, entry);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_session_is_the_same_and_the_kept_context_equals_a_built_one(steps in steps()) {
        let dir = folder();
        let mut session = started(dir.path());
        session.save().unwrap();
        let path = session.file().unwrap().to_owned();
        for step in &steps {
            take(&mut session, step);
            let kept = session.context();
            session.context = None;
            prop_assert_eq!(&kept, &session.context());
            if matches!(step, Step::Reopen) {
                let (before, leaf, totals) = (entries(&session), session.leaf().cloned(), session.totals());
                drop(session);
                session = Session::open(&path).unwrap();
                prop_assert!(session.diagnostics().is_empty());
                session.set_leaf(leaf.as_ref()).unwrap();
                prop_assert_eq!(&before, &entries(&session));
                prop_assert_eq!(&totals, &session.totals());
                prop_assert_eq!(&kept.messages, &session.context().messages);
            }
        }
    }

    #[test]
    fn a_file_cut_anywhere_keeps_every_whole_line_before_the_cut(steps in steps(), cut in any::<usize>()) {
        let dir = folder();
        let mut session = started(dir.path());
        session.save().unwrap();
        steps.iter().for_each(|step| take(&mut session, step));
        let path = session.file().unwrap().to_owned();
        drop(session);
        let bytes = fs::read(&path).unwrap();
        let cut = cut % (bytes.len() + 1);
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        match Session::open(&path) {
            Err(_) => prop_assert_eq!(whole, 0),
            Ok(mut session) => {
                let left = entries(&session).len();
                prop_assert!(left == whole.saturating_sub(1) || left == whole, "{left} of {whole}");
                session.context();
                put(&mut session, user("after"));
                drop(session);
                prop_assert_eq!(entries(&Session::open(&path).unwrap()).len(), left + 1);
            }
        }
    }

    #[test]
    fn random_damage_never_panics(
        steps in steps(),
        hits in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..20),
    ) {
        let dir = folder();
        let mut session = started(dir.path());
        session.save().unwrap();
        steps.iter().for_each(|step| take(&mut session, step));
        let path = session.file().unwrap().to_owned();
        drop(session);
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        for (at, byte) in hits {
            bytes[at % length] = byte;
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(mut session) = Session::open(&path) {
            session.context();
            tree_json(&session);
            let count = entries(&session).len();
            put(&mut session, user("after"));
            drop(session);
            prop_assert_eq!(entries(&Session::open(&path).unwrap()).len(), count + 1);
        }
    }
}
