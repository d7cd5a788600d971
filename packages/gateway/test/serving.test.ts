// Where a gateway may be opened, and over what.
import { spawn } from 'node:child_process'
import {
  createToken,
  GATEWAY_ERROR_CODES,
  GatewayError,
  type GatewayOptions,
  gatewayHandlers,
  serveGateway,
} from '@convoke/gateway'
import { createHost } from '@convoke/host'
import { scriptedStdio, verifies } from '@convoke/testkit'
import { Session } from '@convoke/wire'
import { expect, test } from 'vitest'
import { modernMeta, rpc, send } from '../../wire/test/server-fixture.ts'
import { definitionsOf } from './entries.ts'
import { connect, ERAS, open, textOf } from './fixture.ts'

type Json = Record<string, unknown>
const processFile = new URL('./gateway-process.ts', import.meta.url).pathname

verifies('gateway.020', async () => {
  const host = await createHost({
    definitions: definitionsOf({ one: scriptedStdio() }),
    start: [],
    handlers: gatewayHandlers,
  })
  const codeOf = async (options: GatewayOptions): Promise<string> => {
    try {
      const gateway = await serveGateway(host, options)
      await gateway.close()
      return 'served'
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError)
      return (error as GatewayError).code
    }
  }
  try {
    for (const hostname of ['0.0.0.0', '::', '192.0.2.7', 'tools.example'])
      expect(await codeOf({ http: { hostname } }), hostname).toBe('GATEWAY_TOKEN_REQUIRED')
    expect(await codeOf({ http: { requireToken: true } })).toBe('GATEWAY_TOKEN_REQUIRED')
    for (const token of ['', 'changeme', 'x'.repeat(40)])
      expect(await codeOf({ http: { token } }), token).toBe('GATEWAY_TOKEN_WEAK')
    expect(await codeOf({ transparent: 'two' })).toBe('GATEWAY_SERVER_UNKNOWN')
    const invalid: readonly GatewayOptions[] = [
      { limits: { sessionsMax: -1 } },
      { limits: { callWaitMs: 2 ** 31 } },
      { stdio: true, limits: { listWaitMs: 0.5 } },
      { stdio: true, http: {} },
      { http: { port: 65_536 } },
      ...['*', 'null', 'https://app.example/', 'https://app.example:443', 'https://APP.example', 'app.example'].map(
        (origin) => ({ http: { allowedOrigins: [origin] } }),
      ),
      ...['*', '', '*.example', 'http://tools.example', 'tools.example/mcp', 'a b', '::1'].map((host) => ({
        http: { allowedHosts: [host] },
      })),
    ]
    for (const options of invalid)
      expect(await codeOf(options), JSON.stringify(options)).toBe('GATEWAY_OPTIONS_INVALID')
    const named = { allowedHosts: ['tools.example', '[::1]:80'], allowedOrigins: ['https://app.example', 'app://x'] }
    expect(await codeOf({ http: named })).toBe('served')
    const first = await serveGateway(host, { http: { port: 0 } })
    expect(await codeOf({ http: { port: Number(new URL(first.url ?? '').port) } })).toBe('GATEWAY_ADDRESS_IN_USE')
    await first.close()
    expect(await codeOf({ http: { hostname: '127.255.255.254', port: 1 } })).toMatch(
      /GATEWAY_ADDRESS_UNAVAILABLE|served/,
    )
    for (const hostname of ['127.0.0.1', '::1', 'localhost', '127.0.0.2'])
      expect(await codeOf({ http: { hostname } }), hostname).toBe('served')
    expect(await codeOf({ http: { hostname: '0.0.0.0', token: createToken() } })).toBe('served')
  } finally {
    await host.close()
  }
})

test('the error codes are these', () => {
  expect(GATEWAY_ERROR_CODES).toEqual([
    'GATEWAY_OPTIONS_INVALID',
    'GATEWAY_TOKEN_REQUIRED',
    'GATEWAY_TOKEN_WEAK',
    'GATEWAY_ADDRESS_IN_USE',
    'GATEWAY_ADDRESS_UNAVAILABLE',
    'GATEWAY_SERVER_UNKNOWN',
  ])
})

test('a token opens the endpoint, and health says only that it lives', async () => {
  const token = createToken()
  await using opened = await open({ servers: { one: scriptedStdio() }, options: { http: { token } } })
  const body = rpc('tools/list', { _meta: modernMeta() })
  expect((await send(opened.port, { body })).status).toBe(401)
  const health = await send(opened.port, { method: 'GET', path: '/health' })
  expect([health.status, health.text]).toEqual([200, 'ok'])
  for (const era of ERAS) {
    await using client = await connect(opened.url, era, { token })
    expect(textOf(await client.callTool('one__echo', { text: 'in' }))).toBe('in')
  }
  await expect(connect(opened.url, 'legacy', { token: createToken() })).rejects.toMatchObject({ code: 'unauthorized' })
})

verifies('gateway.019', async () => {
  const script = { servers: { one: scriptedStdio() }, options: { stdio: true } }
  for (const era of ERAS) {
    await using client = await Session.connect({
      target: {
        kind: 'stdio',
        command: process.execPath,
        args: ['--conditions=@convoke/source', processFile, JSON.stringify(script)],
      },
      era,
      startupTimeoutMs: 20_000,
      capabilities: { elicitation: { form: {} } },
      handlers: { 'elicitation/create': async () => ({ action: 'accept', content: { name: era } }) },
    })
    expect(((await client.request('tools/list'))['tools'] as Json[]).length).toBeGreaterThan(10)
    expect(textOf(await client.callTool('one__echo', { text: 'through' }))).toBe('through')
    const seen: unknown[] = []
    await client.callTool('one__progress', { count: 2 }, { onProgress: ({ progress }) => void seen.push(progress) })
    expect(seen).toEqual([1, 2])
    expect(JSON.parse(textOf(await client.callTool('one__elicit')))).toEqual({
      action: 'accept',
      content: { name: era },
    })
    expect(client.noiseCount).toBe(0)
  }
})

test('what a program prints while it serves over stdio goes to stderr, and the end of input ends it', async () => {
  const script = { servers: { one: scriptedStdio() }, options: { stdio: true } }
  const code = `import(${JSON.stringify(processFile)}).catch(console.error); setInterval(() => console.log('stray'), 20).unref()`
  const child = spawn(process.execPath, ['--conditions=@convoke/source', '-e', code, JSON.stringify(script)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const [out, err]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk.toString()))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdin.write(`${rpc('tools/list', { _meta: modernMeta() })}\n`)
  await expect.poll(() => out.join('').includes('"result"'), { timeout: 20_000 }).toBe(true)
  await expect.poll(() => err.join('').includes('stray')).toBe(true)
  child.stdin.end()
  expect(await exited).toBe(0)
  const lines = out
    .join('')
    .trim()
    .split('\n')
    .filter((line) => line !== 'stray') // before it served, stdout was the program's own
  expect(lines.map((line) => (JSON.parse(line) as Json)['id'])).toEqual([1])
}, 60_000)
