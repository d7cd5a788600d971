// An endpoint over a pipe.
import { PassThrough } from 'node:stream'
import { verifies } from '@convoke/testkit'
import { type EndpointLimits, type StdioEndpoint, serveStdio } from '@convoke/wire/server'
import { expect, test } from 'vitest'
import { application, modernMeta, Recorder, rpc } from './server-fixture.ts'

type Json = Record<string, unknown>

class Pipe {
  readonly recorder = new Recorder()
  readonly input = new PassThrough({ highWaterMark: 64 * 1024 })
  readonly output = new PassThrough()
  readonly endpoint: StdioEndpoint
  readonly lines: string[] = []
  #rest = ''
  readonly #waiting: { test: () => boolean; resolve: () => void }[] = []

  constructor(limits: Partial<EndpointLimits> = {}) {
    this.endpoint = serveStdio({
      application: application(this.recorder),
      input: this.input,
      output: this.output,
      limits,
    })
  }

  read(): this {
    this.output.on('data', (chunk: Buffer) => {
      const parts = (this.#rest + chunk.toString()).split('\n')
      this.#rest = parts.pop() ?? ''
      this.lines.push(...parts)
      for (const { test, resolve } of [...this.#waiting]) if (test()) resolve()
    })
    return this
  }

  get messages(): Json[] {
    return this.lines.map((line) => JSON.parse(line) as Json)
  }

  write(...lines: string[]): void {
    for (const line of lines) this.input.write(`${line}\n`)
  }

  until(test: (messages: Json[]) => boolean): Promise<void> {
    const met = (): boolean => test(this.messages)
    return met() ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ test: met, resolve }))
  }

  /** Sends a request and gives its answer. */
  async ask(text: string): Promise<Json> {
    const { id } = JSON.parse(text) as { id: unknown }
    const answer = (message: Json): boolean => message['id'] === id && !('method' in message)
    this.write(text)
    await this.until((messages) => messages.some(answer))
    return this.messages.find(answer) as Json
  }

  initialize(version = '2025-11-25'): Promise<Json> {
    return this.ask(
      rpc(
        'initialize',
        { protocolVersion: version, capabilities: { elicitation: {} }, clientInfo: { name: 'pipe' } },
        'init',
      ),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endpoint.close({ drainMs: 20 })
    this.input.destroy()
    this.output.destroy()
  }
}

const call = (name: string, args: Json = {}, id: string | number = 1, more: Json = {}): string =>
  rpc('tools/call', { name, arguments: args, ...more }, id)
const modernCall = (name: string, args: Json = {}, id: string | number = 1, more: Json = {}): string =>
  call(name, args, id, { _meta: modernMeta(), ...more })
const textOf = ({ result }: Json): unknown => ((result as Json)['content'] as { text: string }[])[0]?.text
const codeOf = ({ error }: Json): unknown => (error as Json)['code']

verifies('wire.219', async () => {
  await using pipe = new Pipe({ bodyBytesMax: 10_000 }).read()
  const { recorder } = pipe
  expect((await pipe.ask(rpc('ping', {}, 'early')))['result']).toEqual({})
  expect(codeOf(await pipe.ask(rpc('tools/list', {}, 'too early')))).toBe(-32600)
  // The modern era needs no beginning.
  const discovered = await pipe.ask(rpc('server/discover', { _meta: modernMeta() }, 'd'))
  expect(discovered['result']).toMatchObject({ supportedVersions: ['2026-07-28'] })
  expect(textOf(await pipe.ask(modernCall('echo', { a: 1 }, 'm')))).toBe('{"a":1}')
  expect((await pipe.ask(rpc('ping', { _meta: modernMeta() }, 'gone')))['error']).toMatchObject({ code: -32601 })
  const version = { _meta: { ...modernMeta(), 'io.modelcontextprotocol/protocolVersion': 'v9' } }
  expect((await pipe.ask(rpc('tools/list', version, 'v9')))['error']).toMatchObject({
    code: -32022,
    data: { requested: 'v9' },
  })
  expect((await pipe.initialize('2025-03-26'))['result']).toMatchObject({ protocolVersion: '2025-03-26' })
  expect(codeOf(await pipe.ask(rpc('initialize', {}, 'again')))).toBe(-32600)
  expect(textOf(await pipe.ask(call('progress', {}, 5, { _meta: { progressToken: 'p' } })))).toBe('done')
  expect(pipe.messages.filter(({ method }) => method === 'notifications/progress').length).toBe(3)
  // Answers carry no line break, whatever the application's bytes held.
  expect((await pipe.ask(call('raw', { body: '{\n"a":\r\n1}' }, 6)))['result']).toEqual({ a: 1 })
  // Cancelled: silence. Both eras.
  pipe.write(call('hold', { key: 'old' }, 7), modernCall('hold', { key: 'new' }, '7'))
  await recorder.until(() => recorder.held.size === 2)
  expect(codeOf(await pipe.ask(call('echo', {}, 7)))).toBe(-32600)
  for (const requestId of [7, '7', 99])
    pipe.write(
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason: 'enough' } }),
    )
  await recorder.until(() => recorder.cancelled.length === 2)
  expect([...recorder.cancelled].sort()).toEqual(['new: enough', 'old: enough'])
  // Long lines and nonsense fail alone.
  const long = call('echo', { pad: 'x'.repeat(20_000) }, 'long')
  expect((await pipe.ask(long))['error']).toMatchObject({
    code: -32600,
    message: 'The message has more than 10000 bytes',
  })
  pipe.write('', '   ', 'nonsense', '[]', `[${call('echo', {}, 8)}]`, '{"jsonrpc":"2.0","id":3}')
  expect(textOf(await pipe.ask(call('echo', { end: 1 }, 9)))).toBe('{"end":1}')
  expect(pipe.messages.filter((message) => message['id'] === 7 && 'result' in message)).toEqual([])
  for (const message of pipe.messages) expect(message['jsonrpc']).toBe('2.0')
})

test('a piped client is asked and answers, in both eras', async () => {
  await using pipe = new Pipe().read()
  await pipe.initialize()
  pipe.write(call('ask', {}, 'legacy'))
  await pipe.until((messages) => messages.some(({ method }) => method === 'elicitation/create'))
  const question = pipe.messages.find(({ method }) => method === 'elicitation/create')
  pipe.write(JSON.stringify({ jsonrpc: '2.0', id: question?.['id'], result: { action: 'decline' } }))
  await pipe.until((messages) => messages.some(({ id, result }) => id === 'legacy' && result !== undefined))
  const asked = await pipe.ask(modernCall('ask', {}, 'modern-1'))
  const { requestState } = asked['result'] as Json
  const inputResponses = { 'question-1': { action: 'accept', content: { n: 1 } } }
  const answer = await pipe.ask(modernCall('ask', {}, 'modern-2', { requestState, inputResponses }))
  expect(textOf(answer)).toBe('[{"action":"accept","content":{"n":1}}]')
  // Cancelled while it waits for its second round.
  const second = (await pipe.ask(modernCall('ask', { rounds: 2 }, 'modern-3')))['result'] as Json
  const third = (
    await pipe.ask(
      modernCall('ask', { rounds: 2 }, 'modern-4', { requestState: second['requestState'], inputResponses }),
    )
  )['result'] as Json
  expect(Object.keys(third['inputRequests'] as Json)).toEqual(['question-2'])
})

test('a piped client listens until it or the endpoint has had enough', async () => {
  await using pipe = new Pipe().read()
  const { recorder } = pipe
  pipe.write(rpc('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: modernMeta() }, 'one'))
  pipe.write(rpc('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: modernMeta() }, 'two'))
  await pipe.until((messages) => messages.length === 2)
  pipe.write(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'one' } }))
  let closed = 0
  await new Promise<void>((resolve) => {
    recorder.listeners[0]?.whenClosed(() => {
      closed++
      resolve()
    })
  })
  recorder.listeners[1]?.whenClosed(() => closed++)
  for (const listener of recorder.listeners) listener.notify('notifications/tools/list_changed')
  await pipe.until((messages) => messages.length === 3)
  await pipe.endpoint.close()
  await pipe.until((messages) => messages.length === 4)
  expect(pipe.messages.slice(2).map(({ method, id }) => method ?? id)).toEqual([
    'notifications/tools/list_changed',
    'two',
  ])
  expect(closed).toBe(2)
})

test('the end of input ends the endpoint and what is still open', async () => {
  await using pipe = new Pipe().read()
  const { recorder } = pipe
  await pipe.initialize()
  pipe.write(call('hold', { key: 'k' }, 1))
  await recorder.until(() => recorder.held.size === 1)
  pipe.input.end()
  await pipe.endpoint.closed
  expect(recorder.cancelled).toEqual(['k: The endpoint is closing'])
  expect(recorder.closed).toEqual(['pipe'])
})

verifies('wire.225', async () => {
  await using pipe = new Pipe().read()
  const { recorder, input, output } = pipe
  await pipe.initialize()
  output.pause()
  const bytes = 2_000_000
  for (let id = 100; id < 110; id++) pipe.write(call('big', { bytes }, id))
  await expect.poll(() => input.isPaused()).toBe(true)
  // What was asked for later is not even read.
  expect(recorder.calls.length).toBeLessThan(10)
  const [client] = recorder.clients
  expect(client?.notify('notifications/tools/list_changed', {})).toBe(false)
  output.resume()
  await pipe.until(
    (messages) => messages.filter(({ id, result }) => Number(id) >= 100 && result !== undefined).length === 10,
  )
  expect(client?.notify('notifications/tools/list_changed', {})).toBe(true)

  await using full = new Pipe({ outputBytesTotalMax: 3_000_000 }).read()
  await full.initialize()
  full.output.pause()
  full.write(call('big', { bytes: 4_000_000 }, 1))
  await full.endpoint.closed
})
