// Streams that break: resumption of calls, and the standalone stream that is opened again and again.
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { planListening, type StreamOutcome } from '../src/http-listen.ts'
import {
  CLIENTS,
  connect,
  event,
  failure,
  type Handler,
  json,
  legacy,
  modern,
  openStream,
  startHttp,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const noStream: Handler = (_message, response) => response.writeHead(405).end()

for (const client of CLIENTS)
  describe(client, () => {
    verifies('wire.120', async () => {
      const waits: number[] = []
      let brokenAtMs = 0
      await using server = await startHttp(
        legacy((message, response) => {
          openStream(response)
          response.write(`id: e${message.id}-1\nretry: 120\ndata:\n\n`)
          brokenAtMs = performance.now()
          response.end()
        }),
        (_message, response, { headers, verb }) => {
          const lastEventId = headers['last-event-id']
          if (verb !== 'GET' || lastEventId === undefined) return response.writeHead(405).end()
          waits.push(performance.now() - brokenAtMs)
          brokenAtMs = performance.now()
          const [, id, part] = /^e(\d+)-(\d+)$/.exec(String(lastEventId)) ?? []
          openStream(response)
          if (Number(part) < 7) return response.end(`: wait\n\nid: e${id}-${Number(part) + 1}\ndata:\n\n`)
          return response.end(event({ jsonrpc: '2.0', id: Number(id), result: textResult('resumed') }, `e${id}-end`))
        },
      )
      await using session = await connect(server.url, { client })
      expect(textOf(await session.callTool('x'))).toBe('resumed')
      expect(waits).toHaveLength(7)
      expect(waits[0]).toBeGreaterThanOrEqual(110) // as long as the server asked for
      expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(1)
    })

    test('a stream that is torn in the middle of an event is resumed from the last complete one', async () => {
      const heard: unknown[] = []
      await using server = await startHttp(
        legacy((message, response) => {
          openStream(response)
          response.write(event({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 1 } }, 'a'))
          response.write(
            `retry: 1\nid: b\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"torn`,
          )
          setTimeout(() => response.socket?.destroy(), 30)
          void message
        }),
        (_message, response, { headers }) => {
          if (headers['last-event-id'] !== 'a') return response.writeHead(405).end()
          const { message } = server.seen.find(({ method }) => method === 'tools/call') ?? {}
          openStream(response)
          response.write(event({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 2 } }, 'b'))
          return response.end(event({ jsonrpc: '2.0', id: message?.id, result: textResult('whole') }, 'c'))
        },
      )
      await using session = await connect(server.url, { client })
      const result = await session.callTool('x', {}, { onNotification: (_method, { data }) => heard.push(data) })
      expect(textOf(result)).toBe('whole')
      expect(heard).toEqual([1, 2])
    })

    verifies('wire.121', async () => {
      let resumes = 0
      await using server = await startHttp(
        legacy((message, response) => {
          openStream(response)
          const { name } = message.params ?? {}
          response.end(name === 'no-id' ? ': bye\n\n' : `retry: 1\nid: ${name}\ndata:\n\n`)
        }),
        (_message, response, { headers, verb }) => {
          const id = headers['last-event-id']
          if (verb !== 'GET' || id === undefined) return response.writeHead(405).end()
          resumes++
          if (id === 'refused') return response.writeHead(404).end()
          if (id === 'torn') return response.socket?.destroy()
          openStream(response)
          return response.end()
        },
      )
      await using session = await connect(server.url, { client })
      expect(await failure(session.callTool('no-id'))).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(resumes).toBe(0)
      expect(await failure(session.callTool('refused'))).toMatchObject({
        code: 'closed',
        message: expect.stringContaining('HTTP 404'),
        details: { sent: true },
      })
      expect(resumes).toBe(1)
      for (const name of ['nothing', 'torn']) {
        resumes = 0
        expect(await failure(session.callTool(name))).toMatchObject({
          code: 'closed',
          message: expect.stringContaining('5 attempts to resume it brought nothing'),
          details: { sent: true },
        })
        // A connection torn before the first byte of its answer may be tried again at once.
        expect(name === 'nothing' ? resumes : Math.min(resumes, 5)).toBe(5)
      }
      expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(4)
    })

    test('an abort ends a resumption, waiting or running', async () => {
      await using server = await startHttp(
        legacy((message, response) => {
          if (message.method !== 'tools/call') return response.writeHead(202).end()
          openStream(response)
          return response.end(`retry: ${message.params?.name === 'waiting' ? 60_000 : 1}\nid: x\ndata:\n\n`)
        }),
        (_message, response, { headers }) => {
          if (headers['last-event-id'] === undefined) return response.writeHead(405).end()
          return openStream(response)
        },
      )
      await using session = await connect(server.url, { client })
      for (const name of ['waiting', 'running']) {
        const controller = new AbortController()
        const call = failure(session.callTool(name, {}, { signal: controller.signal }))
        await until(() => server.log.at(-1) === (name === 'waiting' ? 'tools/call' : 'GET'))
        setTimeout(() => controller.abort(), 30)
        expect(await call).toMatchObject({ code: 'cancelled', details: { sent: true } })
      }
      await server.seen.findLast(({ verb }) => verb === 'GET')?.left
    })

    test('the modern era knows no resumption', async () => {
      await using server = await startHttp(
        modern((_message, response) => {
          openStream(response)
          response.end('retry: 1\nid: x\ndata:\n\n')
        }),
      )
      await using session = await connect(server.url, { client })
      expect(await failure(session.callTool('echo'))).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(server.log).toEqual(['server/discover', 'tools/call'])
    })

    verifies('wire.122', async () => {
      const heard: string[] = []
      let streams = 0
      await using server = await startHttp(
        legacy((message, response) => json(response, message, textResult('fine')), {
          capabilities: { tools: { listChanged: true } },
        }),
        (_message, response, { verb }) => {
          if (verb !== 'GET') return response.writeHead(405).end()
          openStream(response)
          response.write(event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }, `s${++streams}`))
          if (streams < 4) response.end('retry: 150\n\n')
          return undefined
        },
      )
      await using session = await connect(server.url, { client }, { onNotification: (method) => heard.push(method) })
      await until(() => heard.length === 4)
      expect(heard).toEqual(Array(4).fill('notifications/tools/list_changed'))
      expect(server.seen.filter(({ verb }) => verb === 'GET').map(({ headers }) => headers['last-event-id'])).toEqual([
        undefined,
        's1',
        's2',
        's3',
      ])
      expect(textOf(await session.callTool('x'))).toBe('fine')
    })

    test('a server that withholds the headers of its stream delays nobody', async () => {
      await using server = await startHttp(
        legacy((message, response) => json(response, message, textResult('fine')), {}, { 'mcp-session-id': 's' }),
        (_message, response, { verb }) => {
          if (verb !== 'GET') response.writeHead(200).end()
        },
      )
      await using session = await connect(server.url, { client })
      await until(() => server.log.includes('GET'))
      expect(textOf(await session.callTool('x'))).toBe('fine')
    })

    test('an answer on the standalone stream is an answer, where the server had only accepted the call', async () => {
      let deliver = (_text: string): void => {}
      await using server = await startHttp(
        legacy(
          (message, response) => {
            response.writeHead(202).end()
            deliver(event({ jsonrpc: '2.0', id: message.id, result: textResult('late') }))
          },
          {},
          { 'mcp-session-id': 's' },
        ),
        (_message, response, { verb }) => {
          if (verb !== 'GET') return response.writeHead(200).end()
          openStream(response)
          deliver = (text) => void response.write(text)
          return undefined
        },
      )
      await using session = await connect(server.url, { client })
      await until(() => server.log.includes('GET'))
      expect(textOf(await session.callTool('x'))).toBe('late')
      await using without = await startHttp(
        legacy((_message, response) => response.writeHead(202).end()),
        noStream,
      )
      await using other = await connect(without.url, { client })
      expect(await failure(other.callTool('x'))).toMatchObject({
        code: 'malformed',
        message: 'HTTP 202 without an answer to "tools/call"',
      })
    })
  })

verifies('wire.123', () => {
  const refused = (status: number): StreamOutcome => ({ kind: 'refused', status })
  const over = (opened: boolean, progressed = false, livedMs = 0): StreamOutcome => ({
    kind: 'over',
    opened,
    progressed,
    livedMs,
  })
  const rows: [StreamOutcome, number, number | undefined, ReturnType<typeof planListening>][] = [
    [refused(405), 0, undefined, { kind: 'stop' }],
    [refused(400), 0, undefined, { kind: 'stop' }],
    [refused(401), 0, undefined, { kind: 'stop' }],
    [refused(403), 0, undefined, { kind: 'stop' }],
    [refused(404), 0, undefined, { kind: 'check' }],
    [refused(408), 0, undefined, { kind: 'again', afterMs: 1_000, failures: 1 }],
    [refused(429), 0, undefined, { kind: 'again', afterMs: 1_000, failures: 1 }],
    [refused(500), 0, undefined, { kind: 'again', afterMs: 1_000, failures: 1 }],
    [refused(503), 3, undefined, { kind: 'again', afterMs: 8_000, failures: 4 }],
    [refused(503), 10, undefined, { kind: 'again', afterMs: 30_000, failures: 11 }],
    [refused(503), 11, undefined, { kind: 'stop' }],
    [over(false), 0, undefined, { kind: 'again', afterMs: 1_000, failures: 1 }],
    [over(false), 11, undefined, { kind: 'stop' }],
    [over(true), 2, undefined, { kind: 'again', afterMs: 4_000, failures: 3 }],
    [over(true), 2, 20_000, { kind: 'again', afterMs: 20_000, failures: 3 }],
    [over(true, true), 2, undefined, { kind: 'again', afterMs: 1_000, failures: 0 }],
    [over(true, false, 5_000), 9, undefined, { kind: 'again', afterMs: 1_000, failures: 0 }],
    [over(true, true), 2, 150, { kind: 'again', afterMs: 150, failures: 0 }],
  ]
  for (const [outcome, failures, retryMs, plan] of rows)
    expect(planListening(outcome, failures, retryMs), JSON.stringify(outcome)).toEqual(plan)
})
