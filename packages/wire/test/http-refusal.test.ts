// What an answer that is no answer means: the table.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { type Asked, planRefusal, type Refusal, redact, refusalError, saysForgotten } from '../src/http-refusal.ts'

const asked: Asked = {
  method: 'tools/call',
  era: 'legacy',
  hadSession: true,
  greeted: true,
  mayFallBack: false,
  server: 'x:1',
  secrets: [],
}
const refusal = (status: number, body: unknown = '', rest: Partial<Refusal> = {}): Refusal => ({
  status,
  contentType: typeof body === 'string' ? 'text/plain' : 'application/json',
  challenge: undefined,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  ...rest,
})
const rpc = (code: number, message: string): object => ({ jsonrpc: '2.0', id: null, error: { code, message } })

verifies('wire.114', () => {
  const rows: [string, Refusal, Partial<Asked>, string][] = [
    ['404 with a session', refusal(404), {}, 'session-lost'],
    ['404 as a page', refusal(404, '<h1>Not found</h1>', { contentType: 'text/html' }), {}, 'session-lost'],
    ['404 as JSON-RPC', refusal(404, rpc(-32001, 'Session not found')), {}, 'session-lost'],
    ['404 without a session', refusal(404), { hadSession: false }, 'fail'],
    ['404 for a method', refusal(404, rpc(-32601, 'Method not found')), {}, 'fail'],
    ['404 for a parameter', refusal(404, rpc(-32602, 'Unknown tool')), {}, 'fail'],
    ['404 to initialize', refusal(404), { method: 'initialize' }, 'fail'],
    ['404 to a notification', refusal(404), { method: undefined }, 'fail'],
    ['404 in the modern era', refusal(404), { era: 'modern' }, 'fail'],
    ['400 of SDK v1', refusal(400, rpc(-32000, 'Bad Request: No valid session ID provided')), {}, 'session-lost'],
    [
      '400 of SDK v1, started anew',
      refusal(400, rpc(-32000, 'Bad Request: Server not initialized')),
      {},
      'session-lost',
    ],
    [
      '400 of SDK v1, without an id',
      refusal(400, rpc(-32000, 'Bad Request: Mcp-Session-Id header is required')),
      { hadSession: false },
      'session-lost',
    ],
    ['400 of mcp-go', refusal(400, 'Invalid session ID\n'), {}, 'session-lost'],
    ['400 of an SSE server', refusal(400, 'No transport found for sessionId'), {}, 'session-lost'],
    ['400 with an id in it', refusal(400, 'Session 1868a90c not found'), {}, 'session-lost'],
    ['400 before the handshake', refusal(400, 'Invalid session ID'), { greeted: false }, 'fail'],
    [
      '400 about something else',
      refusal(400, rpc(-32600, 'Invalid request: the session field is not found in the body')),
      {},
      'fail',
    ],
    ['400 about a parameter', refusal(400, rpc(-32602, 'Session not found')), {}, 'fail'],
    ['401 of rmcp', refusal(401, 'Unauthorized: Session not found'), {}, 'session-lost'],
    ['401 with a challenge', refusal(401, 'Unauthorized: Session not found', { challenge: 'Bearer' }), {}, 'authorize'],
    ['401 plain', refusal(401, 'Session expired, sign in again'), { hadSession: false }, 'authorize'],
    ['403', refusal(403), {}, 'authorize'],
    ['405 to initialize, auto', refusal(405), { method: 'initialize', greeted: false, mayFallBack: true }, 'fall-back'],
    [
      '400 to initialize with an MCP error',
      refusal(400, rpc(-32600, 'no')),
      { method: 'initialize', greeted: false, mayFallBack: true },
      'fail',
    ],
    ['405 to initialize, streamable', refusal(405), { method: 'initialize', greeted: false }, 'fail'],
    ['405 to a call', refusal(405), { mayFallBack: true }, 'fail'],
    ['500', refusal(500, 'Session not found'), {}, 'fail'],
  ]
  for (const [what, one, how, kind] of rows) expect(planRefusal(one, { ...asked, ...how }).kind, what).toBe(kind)
  const says = (message: string): boolean => saysForgotten(Buffer.from(JSON.stringify(rpc(-32000, message))), 0, 999)
  expect(
    ['Server not initialized', 'Bad Request: Server not initialized.', 'Session not found', 'session expired'].map(
      says,
    ),
  ).toEqual([true, true, true, true])
  expect(
    ['Session not found for user 7', 'The session expired', 'No', 'Server not initialized yet, try later'].map(says),
  ).toEqual([false, false, false, false])
  expect(saysForgotten(Buffer.from('{"result":{"error":"Session not found"}}'), 0, 41)).toBe(false)
})

test('an error of JSON-RPC beneath a passing failure does not make a start final', () => {
  const busy = refusal(503, rpc(-32603, 'warming up'))
  expect(refusalError(busy, { ...asked, method: 'initialize' })).toMatchObject({
    code: 'http',
    details: { status: 503 },
  })
  expect(refusalError(busy, asked)).toMatchObject({ code: 'remote', details: { status: 503, rpc: { code: -32603 } } })
  expect(refusalError(refusal(404, '', { contentType: undefined }), { ...asked, era: 'modern' })).toMatchObject({
    code: 'remote',
    details: { rpc: { code: -32601 } },
  })
  expect(
    refusalError(refusal(404, '<p>no</p>', { contentType: 'text/html' }), { ...asked, era: 'modern' }),
  ).toMatchObject({ code: 'http', message: 'x:1 answered "tools/call" with HTTP 404: no' })
  expect(
    refusalError(refusal(400, '{"error":{"code":"x"}}', { contentType: 'application/json' }), asked),
  ).toMatchObject({ code: 'http' })
})

test('a hostile page is no trouble for the preview', () => {
  const pages = [
    '<'.repeat(60_000),
    '<script'.repeat(9_000),
    '<a '.repeat(20_000),
    '&nbsp;'.repeat(10_000),
    '\u202e\u0000'.repeat(30_000),
    `<title>${'x'.repeat(60_000)}`,
  ]
  for (const page of pages) {
    const startMs = performance.now()
    const { message } = refusalError(refusal(500, page, { contentType: 'text/html' }), asked)
    expect(performance.now() - startMs, page.slice(0, 10)).toBeLessThan(1_000)
    expect(message.length).toBeLessThan(400)
  }
})

test('secrets are taken out in the forms in which they come back', () => {
  const secret = 'p/ss+"wörd"'
  for (const form of [
    secret,
    JSON.stringify(secret),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url'),
  ])
    expect(redact(`before ${form} after`, [secret])).toMatch(/^before "?\[redacted\]"? after$/)
  expect(redact('short words stay', ['short'])).toBe('short words stay')
})

test('secrets in an error of the server are taken out of all its parts', () => {
  const secret = 'tok-"CANARY"-1'
  const error = refusalError(
    refusal(400, {
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32000, message: `bad ${secret}`, data: { sent: [secret] } },
    }),
    { ...asked, secrets: [secret] },
  )
  expect(error.message).toBe('bad [redacted]')
  expect(error.details.rpc).toEqual({ code: -32000, message: 'bad [redacted]', data: { sent: ['[redacted]'] } })
})
