// `convoke serve` while its configuration is edited.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterEach, beforeEach, expect } from 'vitest'
import { Home, type Running } from './command.ts'
import { openSession, type Session } from './mcp-client.ts'
import { scripted } from './servers.ts'

let home: Home
const running: Running[] = []
beforeEach(async () => {
  home = await Home.make()
})
afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill('SIGTERM')
    await ended
  }
  await home.whenQuiet()
  await home[Symbol.asyncDispose]()
})

async function serve(): Promise<Running & { url: string; session: Session }> {
  const temporary = join(home.folder, 'tmp')
  await mkdir(temporary, { recursive: true })
  const started = home.start(['serve', '--http', '127.0.0.1:0'], { env: { TMPDIR: temporary }, timeoutMs: 60_000 })
  running.push(started)
  const [url] = await started.seen(/http:\/\/[\d.]+:\d+\/mcp/)
  return { ...started, url, session: await openSession(url) }
}

const toolsOf = async (session: Session): Promise<string[]> => {
  const { message } = await session.request('tools/list')
  return ((message?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}
const ask = async (session: Session, name: string, args: object = {}): Promise<string> => {
  const { message } = await session.request('tools/call', { name, arguments: args })
  return JSON.stringify(message?.result ?? message?.error)
}
const pidOf = async (session: Session, server: string): Promise<string | undefined> =>
  /\\"pid\\":(\d+)/.exec(await ask(session, `${server}__seen`))?.[1]

verifies('command.060', async () => {
  await home.configure({ kept: scripted(), gone: scripted() })
  const { session, seen } = await serve()
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('gone__echo')
  const pid = await pidOf(session, 'kept')
  const secret = 'CANARY-2f1c'
  await home.configure({
    kept: { ...scripted(), toolTimeoutMs: 20_000, env: {} },
    added: { ...scripted(), env: { API_TOKEN: secret } },
  })
  await seen(/The configuration has changed:/)
  await seen(/kept reuse: .*changed without a new start: toolTimeoutMs/)
  await seen(/added start: /)
  await seen(/gone retire: /)
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('added__echo')
  expect(await toolsOf(session)).not.toContain('gone__echo')
  expect(await pidOf(session, 'kept')).toBe(pid)
  const [served] = running
  served?.child.kill('SIGTERM')
  const { stdout, stderr } = (await served?.ended) ?? { stdout: secret, stderr: secret }
  expect(stdout + stderr).not.toContain(secret)
})

verifies('command.061', async () => {
  await home.configure({ one: scripted() })
  const { session, seen } = await serve()
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('one__echo')
  await home.configure('{ "mcpServers": { "one": ')
  await seen(/The configuration was not applied; what runs goes on as it is\./)
  expect(await ask(session, 'one__echo', { text: 'still there' })).toContain('still there')
  // The same fault is told once; a single broken entry is told and the others apply.
  await home.configure({ one: scripted(), two: scripted(), odd: { command: 7 } })
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('two__echo')
  const [served] = running
  served?.child.kill('SIGTERM')
  const { stderr } = (await served?.ended) ?? { stderr: '' }
  expect(stderr.match(/was not applied/g)).toHaveLength(1)
  expect(stderr).toMatch(/error: .*odd/)
})

verifies('command.062', async () => {
  await home.configure({ one: scripted() })
  const { session } = await serve()
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('one__echo')
  const pid = await pidOf(session, 'one')
  for (let round = 0; round < 40; round++) {
    const servers = { one: scripted(), [`s${round}`]: scripted() }
    // Every other time as editors do it: a new file takes the place of the old one.
    if (round % 2 === 0) await home.configure(servers)
    else {
      const draft = `${home.configFile}.draft`
      await writeFile(draft, JSON.stringify({ mcpServers: servers }), { mode: 0o600 })
      await rename(draft, home.configFile)
    }
    await new Promise((resolve) => setTimeout(resolve, 40))
  }
  await expect.poll(() => toolsOf(session), { timeout: 15_000 }).toContain('s39__echo')
  expect((await toolsOf(session)).filter((name) => name.endsWith('__echo'))).toEqual(['one__echo', 's39__echo'])
  expect(await pidOf(session, 'one')).toBe(pid)
  const servers = async (): Promise<number> =>
    (await home.processes()).filter(({ command }) => command.includes('scripted-stdio')).length
  await expect.poll(servers, { timeout: 10_000 }).toBe(2)
  // Gone is gone: without the file there is no server.
  await rm(home.configFile)
  await expect.poll(servers, { timeout: 10_000 }).toBe(0)
})

verifies('command.063', async () => {
  const { session, seen } = await serve()
  await expect.poll(() => toolsOf(session), { timeout: 20_000 }).toContain('memory__read_graph')
  await home.configure({ mine: scripted() })
  await seen(/memory retire: /)
  await expect.poll(() => toolsOf(session), { timeout: 10_000 }).toContain('mine__echo')
  expect(await toolsOf(session)).not.toContain('memory__read_graph')
})
