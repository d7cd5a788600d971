// Servers for the tests of the core, and how to look at what they saw.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Session, type SessionOptions, type StdioTarget, type ToolResult } from '@convoke/wire'

/** How often each property is tried: 1,000 in ordinary runs, more in the gate and the soak. A failure prints its seed. */
export const FUZZ_RUNS: number = Number(process.env['CONVOKE_FUZZ_RUNS'] ?? 1_000)
export const FUZZ_TIMEOUT_MS: number = 30_000 + FUZZ_RUNS * 5

export type Step =
  | string
  | { text: string }
  | { line: string; times: number }
  | { before: string; pad: number; after: string }
  | { repeat: string; times: number }
  | { stderr: string; times?: number }
  | { waitMs: number }
  | { log: string }
  | { exit: number }
  | { signal: string }
  | { grandchild: 'own-session' | 'same-group' }
  | { close: 'stdin' | 'stdout' }
  | { stopReading: true }
export type Rules = Record<string, readonly Step[]>

const SERVER = fileURLToPath(new URL('../../testkit/servers/stdio-lines.mjs', import.meta.url))

/** A server that writes exactly what the rules say. */
export function linesServer(rules: Rules = {}, target: Partial<StdioTarget> = {}): StdioTarget {
  return { kind: 'stdio', command: process.execPath, args: [SERVER, JSON.stringify(rules)], ...target }
}

/** Connects to such a server, as a legacy one unless told otherwise. */
export function connect(rules: Rules = {}, options: Partial<SessionOptions> = {}): Promise<Session> {
  return Session.connect({ target: linesServer(rules), era: 'legacy', ...options })
}

export const textOf = ({ content }: ToolResult): string => String(content[0]?.['text'])
export const result = (text: string, id = '$ID'): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${JSON.stringify(text)}}]}}`

export interface SeenMessage {
  id?: number
  method?: string
  key?: string
  params?: Record<string, unknown>
}

/** Every message that the server has received so far, this question included. */
export async function seenBy(session: Session): Promise<SeenMessage[]> {
  return JSON.parse(textOf(await session.callTool('seen'))) as SeenMessage[]
}

/** Whether a process runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\S+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Waits for a state, with a bound. */
export async function until(isTrue: () => boolean | Promise<boolean>, boundMs = 10_000): Promise<void> {
  const endsAtMs = performance.now() + boundMs
  while (!(await isTrue())) {
    if (performance.now() > endsAtMs) throw new Error(`Not true within ${boundMs} ms: ${isTrue}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The numbers of the grandchildren that a server has announced on stderr. */
export function grandchildrenIn(stderr: string): number[] {
  return [...stderr.matchAll(/GRANDCHILD (\d+)/g)].map((match) => Number(match[1]))
}
