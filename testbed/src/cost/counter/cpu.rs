//! CPU time, from the scheduler: exact to the nanosecond, unlike the ticks in `stat`.

use std::fs;

use crate::cost::CostError;

/// Time that all threads of `pid` have run, in nanoseconds. Threads that have ended do not count; Envoy's do not end.
pub(super) fn nanoseconds(pid: u32) -> Result<u64, CostError> {
    let tasks = format!("/proc/{pid}/task");
    let folder = fs::read_dir(&tasks).map_err(CostError::io("read", &tasks))?;
    let mut sum = 0;
    for task in folder.flatten() {
        let path = task.path().join("schedstat");
        let text = fs::read_to_string(&path).map_err(CostError::io("read", &path))?;
        let run: Option<u64> = text
            .split_whitespace()
            .next()
            .and_then(|field| field.parse().ok());
        sum += run.ok_or(CostError::Counter {
            tool: "/proc/PID/task/TID/schedstat",
            found: text,
            expected: "nanoseconds in the first field",
        })?;
    }
    Ok(sum)
}
