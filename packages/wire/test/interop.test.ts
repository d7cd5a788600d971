// Servers that others wrote.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { everythingStdio, filesystemStdio, memoryStdio, sdk1Stdio, sdk2Stdio, verifies } from '@convoke/testkit'
import { type JsonObject, type ServerRequestHandler, Session } from '@convoke/wire'
import { expect, test } from 'vitest'
import { textOf, until } from './lines.ts'
import type { Version1, Version2 } from './spec-types.ts'

const handlers: Record<string, ServerRequestHandler> = {
  'elicitation/create': ({ requestedSchema }) => {
    const { properties = {} } = (requestedSchema ?? {}) as { properties?: Record<string, unknown> }
    return Promise.resolve({
      action: 'accept',
      content: Object.fromEntries(Object.keys(properties).map((name) => [name, 'ada@example.org'])),
    })
  },
  'sampling/createMessage': () =>
    Promise.resolve({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } }),
  'roots/list': () => Promise.resolve({ roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
}
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } }

verifies('wire.080', async () => {
  const heard: string[] = []
  await using session = await Session.connect({
    target: everythingStdio(),
    handlers,
    capabilities,
    onNotification: (method) => heard.push(method),
  })
  expect([session.era, session.launches]).toEqual(['legacy', 1])
  const { items, rejected } = await session.list('tools')
  expect(items.length).toBeGreaterThanOrEqual(10)
  expect(rejected).toEqual([])
  expect(textOf(await session.callTool('echo', { message: 'größe' }))).toBe('Echo: größe')
  const progress: unknown[] = []
  await session.callTool(
    'trigger-long-running-operation',
    { duration: 1, steps: 5 },
    { idleTimeoutMs: 5_000, onProgress: (one) => progress.push(one['progress']) },
  )
  expect(progress).toEqual([1, 2, 3, 4, 5])
  expect(textOf(await session.callTool('trigger-sampling-request', { prompt: 'x', maxTokens: 10 }))).toContain(
    'sampled',
  )
  const image = await session.callTool('get-tiny-image')
  expect(image.content.map(({ type }) => type)).toContain('image')
  expect((await session.list('prompts')).items.length).toBeGreaterThan(0)
  expect((await session.list('resources')).items.length).toBeGreaterThan(0)
  expect((await session.list('resourceTemplates')).items.length).toBeGreaterThan(0)
  const failed = await session.callTool('echo', {})
  expect(failed.isError).toBe(true)
  const raw = await session.requestRaw('tools/call', { name: 'echo', arguments: { message: 'raw' } })
  expect([raw.kind, JSON.parse(raw.body.toString())]).toEqual([
    'result',
    { content: [{ type: 'text', text: 'Echo: raw' }] },
  ])
  expect(session.noiseCount).toBe(0)
})

verifies('wire.080', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'wire-'))
  try {
    await writeFile(join(folder, 'note.txt'), 'hello')
    await using files = await Session.connect({ target: filesystemStdio(folder) })
    const read = await files.callTool('read_text_file', { path: join(folder, 'note.txt') })
    expect(textOf(read)).toBe('hello')
    const outside = await files.callTool('read_text_file', { path: '/etc/hostname' })
    expect(outside.isError).toBe(true)
    await using memory = await Session.connect({ target: memoryStdio(join(folder, 'graph.jsonl')) })
    await memory.callTool('create_entities', {
      entities: [{ name: 'Ada', entityType: 'person', observations: ['counts'] }],
    })
    const found = await memory.callTool('search_nodes', { query: 'Ada' })
    expect((found.structuredContent as { entities: JsonObject[] }).entities).toMatchObject([{ name: 'Ada' }])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

verifies('wire.080', async () => {
  await using session = await Session.connect({ target: sdk1Stdio(), handlers, capabilities })
  expect(session.era).toBe('legacy')
  expect(textOf(await session.callTool('echo', { text: 'v1' }))).toBe('v1')
  expect((await session.callTool('add', { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 })
  let steps = 0
  await session.callTool('steps', { count: 20 }, { onProgress: () => steps++ })
  expect(steps).toBeGreaterThan(0)
  expect((await session.callTool('ask', {})).isError).not.toBe(true)
  await until(() => session.hasAskedBack)
})

for (const era of ['legacy', 'modern'] as const)
  verifies('wire.080', async () => {
    const options = { target: sdk2Stdio(), ...(era === 'legacy' ? { era } : {}), handlers, capabilities }
    const first = await Session.connect(options)
    await first.close()
    // On a busy machine the first start may be too slow for the modern era, and knows it.
    expect(first.verdict.era).toBe(era)
    await using session = await Session.connect({ ...options, remembered: first.verdict })
    expect([session.era, session.launches]).toEqual([era, 1])
    const { items, rejected } = await session.list('tools')
    expect([items.length > 5, rejected]).toEqual([true, []])
    expect(textOf(await session.callTool('test_simple_text'))).not.toBe('')
    const asking = era === 'legacy' ? 'test_elicitation' : 'test_input_required_result_elicitation'
    expect((await session.callTool(asking, { message: 'name?' })).isError).not.toBe(true)
    let progress = 0
    await session.callTool('test_tool_with_progress', {}, { onProgress: () => progress++ })
    expect(progress).toBeGreaterThanOrEqual(3)
    const resources = await session.list('resources')
    expect(resources.items.length).toBeGreaterThan(0)
    if (era === 'modern') expect(resources.cacheScope).toBeDefined()
  })

verifies('wire.081', async () => {
  const code = `
    const before = new Set(process.moduleLoadList)
    await import('@convoke/wire')
    console.log(JSON.stringify(process.moduleLoadList.filter((one) => !before.has(one))))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=@convoke/source', '--input-type=module', '-e', code],
    { cwd: fileURLToPath(new URL('..', import.meta.url)) },
  )
  const loaded = JSON.parse(stdout) as string[]
  expect(
    loaded.filter((one) => /child_process|NativeModule (?:_?https?|net|tls|dns|crypto|zlib)|undici/.test(one)),
  ).toEqual([])
})

test('a server of many tools and big answers', async () => {
  await using session = await Session.connect({ target: everythingStdio(), era: 'legacy' })
  const message = 'x'.repeat(5_000_000)
  expect(textOf(await session.callTool('echo', { message }))).toHaveLength(5_000_006)
})

test('our types are those of both SDKs', () => {
  // A difference does not compile; see `spec-types.ts`.
  const both: [Version1, Version2] = [true, true]
  expect(both).toEqual([true, true])
})
