const POLL_MS = 250

/** Ends this process on SIGTERM, and soon after the process that started it has ended in any way. */
export function endWithParent() {
  const parent = process.ppid
  process.once('SIGTERM', () => process.exit(0))
  setInterval(() => {
    if (process.ppid !== parent) process.exit(0)
  }, POLL_MS)
}
