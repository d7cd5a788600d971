// Every server of the testkit does what it promises, judged by the SDK's own clients.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport as Transport1 } from '@modelcontextprotocol/sdk/shared/transport.js'
import { describe, expect, test } from 'vitest'
import {
  everythingStdio,
  filesystemStdio,
  type Launch,
  memoryStdio,
  scriptedStdio,
  sdk1Stdio,
  sdk2Stdio,
  startEverythingHttp,
  startScriptedHttp,
  startScriptedHttpProcess,
  startSdk1Http,
  startSdk2Http,
} from '../src/index.ts'

const info = { name: 'oracle', version: '1.0.0' }

/** Asks with the SDK v1 client: the tools, and one call. */
async function askWith1(
  transport: Http1 | Stdio1,
  tool: string,
  args: Record<string, unknown>,
): Promise<[string[], unknown]> {
  const client = new Client1(info)
  try {
    await client.connect(transport as Transport1)
    const { tools } = await client.listTools()
    const { content } = await client.callTool({ name: tool, arguments: args })
    return [tools.map(({ name }) => name), content]
  } finally {
    if (transport instanceof Http1) await transport.terminateSession()
    await client.close()
  }
}

async function askWith2(transport: Http2 | Stdio2, era: 'legacy' | 'modern'): Promise<[string[], unknown]> {
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client2(info, { versionNegotiation: { mode } })
  try {
    await client.connect(transport)
    const { tools } = await client.listTools()
    const { content } = await client.callTool({ name: 'echo', arguments: { text: 'hi' } })
    return [tools.map(({ name }) => name), content]
  } finally {
    await client.close()
  }
}

const stdio1 = ({ command, args, env }: Launch): Stdio1 =>
  new Stdio1({ command, args: [...args], stderr: 'ignore', ...(env === undefined ? {} : { env: { ...env } }) })
const stdio2 = ({ command, args }: Launch): Stdio2 => new Stdio2({ command, args: [...args], stderr: 'ignore' })
const http1 = (url: string): Http1 => new Http1(new URL(url))
const http2 = (url: string): Http2 => new Http2(new URL(url))
const hi = [{ type: 'text', text: 'hi' }]

describe('stdio servers answer a client of the SDK', () => {
  const launches: Record<string, [Launch, string]> = {
    'SDK v1': [sdk1Stdio(), 'add'],
    'SDK v2': [sdk2Stdio(), 'test_simple_text'],
    everything: [everythingStdio(), 'get-sum'],
    scripted: [scriptedStdio(), 'crash'],
  }
  for (const [name, [launch, other]] of Object.entries(launches)) {
    test(name, async () => {
      const [tools, content] = await askWith1(stdio1(launch), 'echo', { text: 'hi', message: 'hi' })
      expect(tools).toContain(other)
      expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('hi') }])
    })
  }

  test('SDK v2 in the stateless era', async () => {
    expect((await askWith2(stdio2(sdk2Stdio({ era: 'modern' })), 'modern'))[1]).toEqual(hi)
  })

  test('scripted in the stateless era', async () => {
    expect((await askWith2(stdio2(scriptedStdio({ era: 'modern' })), 'modern'))[1]).toEqual(hi)
  })

  test('filesystem and memory keep to what they were given', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'samples-'))
    try {
      const text = (await askWith1(stdio1(filesystemStdio(folder)), 'list_allowed_directories', {}))[1]
      expect(JSON.stringify(text)).toContain(folder)
      const [tools] = await askWith1(stdio1(memoryStdio(join(folder, 'graph.jsonl'))), 'read_graph', {})
      expect(tools).toContain('create_entities')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('HTTP servers answer a client of the SDK', () => {
  test.for([
    { sessions: 'stateful', answers: 'sse' },
    { sessions: 'stateful', answers: 'json' },
    { sessions: 'stateless', answers: 'sse' },
  ] as const)('SDK v1, $sessions, $answers', async (options) => {
    await using server = await startSdk1Http(options)
    expect(await askWith1(http1(server.url), 'echo', { text: 'hi' })).toEqual([['echo', 'add', 'ask', 'steps'], hi])
  })

  test('SDK v2 in both eras', async () => {
    await using server = await startSdk2Http()
    expect((await askWith2(http2(server.url), 'modern'))[1]).toEqual(hi)
    expect((await askWith2(http2(server.url), 'legacy'))[1]).toEqual(hi)
    expect((await askWith1(http1(server.url), 'echo', { text: 'hi' }))[1]).toEqual(hi)
  })

  test('SDK v2 without sessions', async () => {
    await using server = await startSdk2Http({ sessions: 'none' })
    expect((await askWith2(http2(server.url), 'legacy'))[1]).toEqual(hi)
  })

  test('everything', async () => {
    await using server = await startEverythingHttp()
    expect((await askWith1(http1(server.url), 'echo', { message: 'hi' }))[0]).toContain('get-sum')
  })

  test.for(['json', 'sse', 'sse-resume'] as const)('scripted, %s', async (answers) => {
    await using server = await startScriptedHttp({ answers })
    expect((await askWith1(http1(server.url), 'echo', { text: 'hi' }))[1]).toEqual(hi)
  })

  test('scripted in the stateless era', async () => {
    await using server = await startScriptedHttp({ era: 'modern' })
    expect((await askWith2(http2(server.url), 'modern'))[1]).toEqual(hi)
  })

  test('scripted in a process of its own', async () => {
    await using server = await startScriptedHttpProcess({ name: 'apart' })
    expect((await askWith1(http1(server.url), 'echo', { text: 'hi' }))[1]).toEqual(hi)
  })
})

describe('scripted faults', () => {
  /** Sends lines to a scripted server and collects what it prints until `count` messages with an id have come. */
  async function talk(
    launch: Launch,
    lines: readonly object[],
    count: number,
  ): Promise<{ text: string; code: number | null }> {
    const child = spawn(launch.command, launch.args, { stdio: ['pipe', 'pipe', 'ignore'] })
    let text = ''
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    child.stdout.on('data', (part: Buffer) => {
      text += part.toString()
      if ((text.match(/"id":\d/g) ?? []).length >= count) child.stdin.end()
    })
    for (const line of lines) child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
    return { code: await ended, text }
  }
  const call = (name: string, args: object = {}): object => ({
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args },
  })
  const textOf = (text: string): string => JSON.parse(text.trim().split('\n').at(-1) ?? '{}').result.content[0].text

  test('prints noise around its answers', async () => {
    const { text } = await talk(scriptedStdio({ banner: ['hello'], lineEnd: '\r\n' }), [call('noise')], 1)
    expect(text).toMatch(/^hello\n.*working….*\n\{not json\n\n\{"jsonrpc".*\}\r\n$/su)
  })

  test('exits on the nth call', async () => {
    const tools = [{ name: 'crash', does: { kind: 'exit', code: 5, onCall: 2 } }] as const
    const { text, code } = await talk(scriptedStdio({ tools }), [call('crash'), { ...call('crash'), id: 2 }], 9)
    expect([textOf(text), code]).toEqual(['call 1', 5])
  })

  test('tells what it has seen', async () => {
    const { text } = await talk(
      scriptedStdio(),
      [{ method: 'notifications/cancelled', params: { requestId: 9 } }, call('seen')],
      1,
    )
    expect(JSON.parse(textOf(text))).toMatchObject({
      cancelled: [9],
      requests: ['notifications/cancelled', 'tools/call'],
    })
  })

  test('a grandchild of its own session outlives it, and says so in the log', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stubborn-'))
    try {
      const log = join(folder, 'log.jsonl')
      await talk(scriptedStdio({ log, stubborn: { grandchildren: 1, ownSession: true } }), [call('echo')], 1)
      const events = (await readFile(log, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { event: string; pid: number })
      expect(events.map(({ event }) => event)).toEqual(['start', 'grandchild'])
      expect(process.kill(events[1]?.pid ?? 0, 'SIGKILL')).toBe(true)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('forgets sessions in every way that is met', async () => {
    await using server = await startScriptedHttp({
      forgottenAnswers: ['404-json', '404-html', '404-empty', '400-no-session', '200-not-initialized'],
    })
    const seen: string[] = []
    for (let index = 0; index < 5; index++) {
      const answer = await fetch(server.url, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      })
      seen.push(`${answer.status} ${answer.headers.get('content-type')} ${(await answer.text()).slice(0, 20)}`)
    }
    expect(seen).toEqual([
      '404 application/json {"jsonrpc":"2.0","id',
      '404 text/html <h1>Not Found</h1>',
      '404 null ',
      '400 application/json {"jsonrpc":"2.0","id',
      '200 application/json {"jsonrpc":"2.0","id',
    ])
  })
})
