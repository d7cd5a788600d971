// A gateway whose host changes while clients are there: servers that sleep, listings that move, definitions that are replaced.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type StdioScript, scriptedStdio, verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { definitionsOf } from './entries.ts'
import { connect, open, textOf } from './fixture.ts'

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-gateway-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Opens a gateway whose servers were listed by an earlier host. */
async function openKnown(
  cacheDirectory: string,
  scripts: Readonly<Record<string, StdioScript>>,
): Promise<Awaited<ReturnType<typeof open>>> {
  const servers = Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, scriptedStdio(script)]))
  {
    // The same client as the gateway is: what a server lists may depend on that.
    await using before = await open({ servers, host: { cacheDirectory } })
    await before.host.whenSettled()
  }
  return open({ servers, host: { cacheDirectory } })
}

const states = ({ host }: Awaited<ReturnType<typeof open>>): string[] =>
  host.statuses.map(({ name, state }) => `${name} ${state}`)

describe.each(['legacy', 'modern'] as const)('%s clients', (era) => {
  verifies('gateway.040', async () => {
    await inFolder(async (folder) => {
      await using served = await openKnown(folder, { one: {}, two: {} })
      const beganAtMs = performance.now()
      await using client = await connect(served.url, era)
      const names = (await client.list('tools')).items.map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['one__echo', 'two__echo']))
      expect(performance.now() - beganAtMs).toBeLessThan(2_000)
      expect(states(served)).toEqual(['one dormant', 'two dormant'])
      expect(textOf(await client.callTool('one__echo', { text: 'awake' }))).toBe('awake')
      expect(states(served)).toEqual(['one ready', 'two dormant'])
    })
  })

  verifies('gateway.041', async () => {
    await inFolder(async (folder) => {
      const plain = { capabilities: { tools: {} } }
      await using served = await openKnown(folder, { offers: {}, plain })
      await using client = await connect(served.url, era)
      expect(states(served)).toEqual(['offers dormant', 'plain dormant'])
      const { items } = await client.list('resources')
      expect(items.map(({ uri }) => uri)).toContain('scripted://one')
      expect(states(served)).toEqual(['offers ready', 'plain dormant'])
    })
  })

  verifies('gateway.042', async () => {
    const grow = {
      name: 'grow',
      does: { kind: 'list-changed', what: 'tools', count: 1, everyMs: 0, adds: 'new' },
    } as const
    const servers = { s: scriptedStdio({ tools: [grow, { name: 'echo' }] }) }
    await using served = await open({ servers })
    await served.host.whenSettled()
    await using client = await connect(served.url, era)
    // Fifty calls while the listing moves again and again: none is refused for that.
    const calls = Array.from({ length: 50 }, async (_, index) => {
      if (index % 10 === 0) await client.callTool('s__grow', {})
      return textOf(await client.callTool('s__echo', { text: String(index) }))
    })
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 50 }, (_, index) => String(index)))
  })
})

test('a server that cannot be asked is named in the lists that lack it', async () => {
  await using served = await open({
    servers: { fine: scriptedStdio(), dies: scriptedStdio({ exitAtStart: { code: 3 } }) },
  })
  await served.host.whenSettled()
  await using client = await connect(served.url, 'legacy')
  const { resources, _meta: meta } = await client.request('resources/list', {})
  expect((resources as unknown[]).length).toBeGreaterThan(0)
  expect(meta).toMatchObject({ 'convoke/failures': [{ server: 'dies', code: 'SERVER_EXITED' }] })
})

verifies('gateway.043', async () => {
  const servers = {
    kept: scriptedStdio({ tools: [{ name: 'slow', does: { kind: 'late', ms: 900 } }, { name: 'echo' }] }),
    gone: scriptedStdio(),
  }
  await using served = await open({ servers })
  await served.host.whenSettled()
  await using client = await connect(served.url, 'legacy')
  const names = async (): Promise<string[]> => (await client.list('tools')).items.map(({ name }) => String(name))
  expect(await names()).toContain('gone__echo')
  const running = client.callTool('kept__slow', {})
  const pid = served.host.statuses[0]?.pid
  await served.host.configure(definitionsOf({ kept: servers.kept, added: scriptedStdio() }))
  await client.until(() => client.heard.some(({ method }) => method === 'notifications/tools/list_changed'))
  await served.host.whenSettled()
  await expect.poll(names).toContain('added__echo')
  expect(await names()).not.toContain('gone__echo')
  await expect(client.callTool('gone__echo', {})).rejects.toMatchObject({
    message: expect.stringContaining('Unknown tool'),
  })
  expect((await running).isError).not.toBe(true)
  expect(served.host.statuses[0]?.pid).toBe(pid)
  // What is kept from clients from now on is not listed and not called, on the same session.
  await served.host.configure(
    definitionsOf({ kept: servers.kept, added: scriptedStdio() }, { added: { omitToolsFrom: ['gateway'] } }),
  )
  await expect.poll(names).not.toContain('added__echo')
  await expect(client.callTool('added__echo', {})).rejects.toMatchObject({
    message: expect.stringContaining('Unknown tool'),
  })
  expect(textOf(await client.callTool('kept__echo', { text: 'still here' }))).toBe('still here')
})
