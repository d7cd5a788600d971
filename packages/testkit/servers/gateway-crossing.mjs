#!/usr/bin/env node
// A stdio server for many callers at once: answers in another order than it was asked, twice, or to nobody. Each answer, progress and log message carries its
// caller's marker. An argument names a file with a JSON string that `hostile` puts everywhere.
import { readFileSync } from 'node:fs'

const hostile = process.argv[2] === undefined ? '' : JSON.parse(readFileSync(process.argv[2], 'utf8'))
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const cancelled = new Set()

const tools = ['cross', 'twice', 'stranger', 'hostile'].map((name) => ({ name, inputSchema: { type: 'object' } }))

const ACTS = {
  async cross(id, { marker, delayMs = 0, steps = 0 }, progressToken) {
    for (let progress = 1; progress <= steps; progress++)
      if (progressToken !== undefined)
        send({ method: 'notifications/progress', params: { progressToken, progress, message: marker } })
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    if (!cancelled.delete(id)) send({ id, result: text(marker) })
  },
  twice(id, { marker }) {
    send({ id, result: text(marker) })
    send({ id, result: text('a second answer') })
    send({ id, error: { code: -1, message: 'a third one' } })
  },
  stranger(id, { marker }) {
    for (const nobody of [id + 1_000, 'x', null, -1, id + 0.5]) send({ id: nobody, result: text('for nobody') })
    send({ method: 'notifications/progress', params: { progressToken: id + 1_000, progress: Number.MAX_VALUE } })
    send({ method: 'notifications/progress', params: { progressToken: {}, progress: 'much' } })
    send({ id, result: text(marker) })
    send({ method: 'notifications/progress', params: { progressToken: id, progress: 1 } })
  },
  hostile(id, _args, progressToken) {
    if (progressToken !== undefined)
      send({ method: 'notifications/progress', params: { progressToken, progress: 1, message: hostile } })
    send({
      method: 'notifications/message',
      params: { level: 'info', logger: hostile, data: { [hostile]: [hostile] } },
    })
    send({ id, result: text('done') })
  },
}

const METHODS = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {}, logging: {} },
    serverInfo: { name: 'crossing', version: '1' },
  }),
  'tools/list': () => ({ tools }),
  ping: () => ({}),
}

function receive({ id, method, params = {} }) {
  if (method === 'notifications/cancelled') return void cancelled.add(params.requestId)
  if (id === undefined) return
  if (method === 'tools/call') return void ACTS[params.name]?.(id, params.arguments ?? {}, params._meta?.progressToken)
  const answer = METHODS[method]
  send(
    answer === undefined
      ? { id, error: { code: -32601, message: 'Method not found' } }
      : { id, result: answer(params) },
  )
}

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()
  for (const line of lines) if (line !== '') receive(JSON.parse(line))
})
process.stdin.on('end', () => process.exit(0))
