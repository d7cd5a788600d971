// Processes that must not outlive this one, also when it ends before their owner could close them.

const ends = new Set<() => void>()

/** Calls `end` when this process exits by itself. @returns a function that takes it back. */
export function endWithUs(end: () => void): () => void {
  if (ends.size === 0) process.on('exit', endAll)
  ends.add(end)
  return () => {
    ends.delete(end)
    if (ends.size === 0) process.off('exit', endAll)
  }
}

function endAll(): void {
  for (const end of ends) end()
}

/** Ends a process group, if it is still there. */
export function endGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing of the group is left.
  }
}

/** For scripts: an interrupt or a termination is an ordinary exit, so that nothing is left behind. */
export function exitOnSignals(): void {
  const codes = { SIGINT: 130, SIGTERM: 143 } as const
  for (const [signal, code] of Object.entries(codes)) process.once(signal, () => process.exit(code))
}
