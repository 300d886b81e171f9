//! `claims`: judges what the articles say that busload grew out of.

use super::Usage;
use super::options::exports;
use super::output::{Exports, read_results, say_unfinished};
use crate::claims;
use crate::record::{MOCK, SCHEMA};
use crate::report;
use crate::results::ResultsError;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("claims")
        .about("Judge what the articles claim, by counts of the simulator and by results of a GPU")
        .after_help(
            "Examples:\n  \
             busload claims                       what counts decide\n  \
             busload claims --results bench.json  what times decide too",
        )
        .arg(Arg::new("results").long("results").value_name("FILE").action(ArgAction::Append).help(
            "What `bench --json` wrote on a GPU, given again for more files of that GPU; without it claims about speed \
             stay open",
        ))
        .args(exports())
}

/// Judges the claims.
pub(super) fn run(_: &Suite, matches: &ArgMatches) -> Result<bool> {
    let files = matches.get_many::<String>("results").into_iter().flatten();
    let files = files.map(|file| Ok((file, read_results("--results ", file)?))).collect::<Result<Vec<_>, Usage>>()?;
    if let Some((file, _)) = files.iter().find(|(_, results)| results.machine.kind == MOCK) {
        return Err(Usage(anyhow::Error::new(ResultsError::Mock).context(format!("--results {file}"))).into());
    }
    let machines: Vec<_> = files.iter().map(|(_, results)| results.machine.name.as_str()).collect();
    if let Some(pair) = machines.windows(2).find(|pair| pair[0] != pair[1]) {
        let [one, other] = [pair[0], pair[1]];
        return Err(Usage(anyhow::anyhow!(
            "--results: one file is of an {one}, another of an {other}: claims compare speeds of one GPU, so name its files alone"
        ))
        .into());
    }
    let exports = Exports::open(matches)?;
    exports.are_files_of_their_own(matches.get_many("results").into_iter().flatten())?;
    files.iter().filter(|(_, results)| results.unfinished).for_each(|(file, _)| say_unfinished(file));
    let evidence = claims::Cached::new(files.into_iter().map(|(_, results)| results).collect());
    let judged = claims::judge(&evidence);
    if let Some(reason) = evidence.failed() {
        anyhow::bail!("no claim can be judged: {reason}");
    }
    let object = serde_json::json!({ "schema": SCHEMA, "command": "claims", "claims": judged });
    exports.write(&object, &object["claims"], || report::claims_markdown(&judged), || report::claims_table(&judged))?;
    Ok(true)
}
