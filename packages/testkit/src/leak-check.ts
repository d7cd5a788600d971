// A Vitest setup file: every test file must end with nothing left of it. No process, socket, server, timer, watcher or temporary entry.
import { afterAll } from 'vitest'
import { watchProcesses } from './leaks/processes.ts'
import { watchResources } from './leaks/resources.ts'
import { watchTempEntries } from './leaks/temp-entries.ts'

/** How long closing things may take after the last test: a server that needs its termination signal has 2 s before it gets the next one. */
const GRACE_MS = Number(process.env['CONVOKE_LEAK_GRACE_MS'] ?? 3_000)
const POLL_MS = 20
/** Closings are reported on the next turns of the event loop, not at once. */
const TURNS = 4

// Real timers, also when a test has put fake ones in their place.
const { setTimeout: later, setImmediate: nextTurn } = globalThis

const temp = watchTempEntries()
const processes = watchProcesses()
const resources = watchResources()

function leftBehind(): string[] {
  return [
    ...processes.left().map(({ pid, command }) => `process ${pid}: ${command}`),
    ...resources.left(),
    ...temp.left().map((path) => `temporary entry ${path}`),
  ]
}

// The first hook to be registered is the last to run.
afterAll(async () => {
  resources.freeze()
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => nextTurn(resolve))
  const deadlineAtMs = performance.now() + GRACE_MS
  let left = leftBehind()
  while (left.length > 0 && performance.now() < deadlineAtMs) {
    await new Promise<void>((resolve) => later(resolve, POLL_MS))
    left = leftBehind()
  }
  // What was left is told, and ended all the same: one leaking file must not make the next ones fail.
  for (const { pid } of processes.left()) end(pid)
  resources.stop()
  processes.stop()
  temp.stop()
  if (left.length > 0) throw new Error(`This test file left ${left.length} behind:\n  ${left.join('\n  ')}`)
}, GRACE_MS + 10_000)

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has gone by itself.
  }
}
