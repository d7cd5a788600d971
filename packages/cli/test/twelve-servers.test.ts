import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { everythingStdio, filesystemStdio, memoryStdio, sdk1Stdio, startSdk2Http, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect } from 'vitest'
import { EXIT } from '../src/index.ts'
import { Home } from './command.ts'
import { type Entry, entryOf, scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

/** The start budget of the server that never lists, in milliseconds: what the whole answer may take, with room for a busy machine. */
const BUDGET_MS = 15_000
const ROOM_MS = 15_000

async function twelve(url: string): Promise<Record<string, Entry>> {
  const folder = join(home.folder, 'files')
  await mkdir(folder, { recursive: true })
  return {
    'everything one': entryOf(everythingStdio()),
    'everything two': entryOf(everythingStdio()),
    'files one': entryOf(filesystemStdio(folder)),
    'files two': entryOf(filesystemStdio(folder)),
    'memory one': entryOf(memoryStdio(join(home.folder, 'one.json'))),
    'memory two': entryOf(memoryStdio(join(home.folder, 'two.json'))),
    sdk1: entryOf(sdk1Stdio()),
    'sdk2 stateless': { url },
    'never lists': { ...scripted({ listing: 'silent' }), startupTimeoutMs: BUDGET_MS },
    exits: scripted({ exitAtStart: { code: 4 }, stderr: ['the licence has run out'] }),
    noisy: scripted({ banner: ['Starting up…', '{"not": "a message"}', '\u001b[32mready\u001b[0m'], tools: 3 }),
    late: scripted({
      startDelayMs: 8_000,
      tools: 3,
      stubborn: { grandchildren: 1, ownSession: true, ignoreTerm: true },
    }),
  }
}

interface Answer {
  readonly tools: readonly { readonly server: string; readonly name: string }[]
  readonly servers: readonly {
    readonly name: string
    readonly state: string
    readonly reason?: { readonly message: string }
  }[]
}

verifies(
  'command.027',
  async () => {
    await using remote = await startSdk2Http({ era: 'modern', sessions: 'none' })
    const servers = await twelve(remote.url)
    await home.configure(servers)

    const startedAtMs = performance.now()
    const { code, answer, stderr } = await home.json(['tools'], { timeoutMs: 60_000 })
    expect(performance.now() - startedAtMs).toBeLessThan(BUDGET_MS + ROOM_MS)
    expect(code).toBe(EXIT.ok)
    const { tools, servers: rows } = answer as Answer
    const bad = ['never lists', 'exits']
    expect(rows.map(({ name }) => name)).toEqual(Object.keys(servers))
    for (const { name, state, reason } of rows) {
      expect([name, state]).toEqual([name, bad.includes(name) ? 'failed' : 'ready'])
      expect([name, tools.some(({ server }) => server === name)]).toEqual([name, !bad.includes(name)])
      if (bad.includes(name)) expect(reason?.message).toContain(`"${name}"`)
    }
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
    expect(rows.find(({ name }) => name === 'exits')?.reason?.message).toContain('the licence has run out')
    expect(stderr).toMatch(/not available: never lists \(failed\)/)
    await home.whenQuiet()

    const killed = home.start(['tools', '--live'], { timeoutMs: 60_000 })
    await whenRunning(11)
    killed.child.kill('SIGKILL')
    expect((await killed.ended).signal).toBe('SIGKILL')
    expect((await home.processes()).some(({ command }) => command.includes('scripted-grandchild'))).toBe(true)
    await home.run(['tools', '--server', 'noisy'], { timeoutMs: 60_000 })
    await home.whenQuiet()
  },
  150_000,
)

/** So many of its stdio servers run, and the grandchild that left its group. */
async function whenRunning(count: number): Promise<void> {
  const endAtMs = performance.now() + 20_000
  for (;;) {
    const running = await home.processes()
    const servers = running.filter(({ command }) => /server-|scripted-stdio|sdk1-stdio/.test(command))
    if (servers.length >= count - 1 && running.some(({ command }) => command.includes('scripted-grandchild'))) return
    if (performance.now() > endAtMs) throw new Error(`only ${JSON.stringify(running)}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}
