// Whose token was refused, who is asked for another, how often, and what becomes of the request.
import { setTimeout as later } from 'node:timers/promises'
import { verifies } from '@convoke/testkit'
import { describe, expect, test } from 'vitest'
import { newRenewals, noteRound, planRenewal } from '../src/http-renewal.ts'
import type { Authorization, CredentialsRefusal } from '../src/target.ts'
import {
  accept,
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
  type TestServer,
  textOf,
  textResult,
  until,
} from './http-fixture.ts'

const echoToken = (headers: Record<string, string> = { 'mcp-session-id': 's1' }): Handler =>
  legacy(
    (message, response, request) => json(response, message, textResult(String(request.headers.authorization))),
    {},
    headers,
  )

/** Lets those pass whose token is good. */
function guarded(
  isGood: (authorization: string | undefined) => boolean,
  rest: Handler,
  challenge = 'Bearer error="invalid_token"',
): Handler {
  return (message, response, request) =>
    isGood(request.headers.authorization)
      ? rest(message, response, request)
      : response.writeHead(401, { 'www-authenticate': challenge }).end()
}

/** Gives whatever the test says, and keeps what it was asked. */
class Wallet implements Authorization {
  value: string | undefined
  asked = 0
  readonly refusals: CredentialsRefusal[] = []
  onChallenge: (refusal: CredentialsRefusal) => boolean | Promise<boolean> = () => false

  constructor(value: string | undefined) {
    this.value = value
  }
  header(): string | undefined {
    this.asked++
    return this.value
  }
  async challenge(refusal: CredentialsRefusal): Promise<boolean> {
    this.refusals.push(refusal)
    return this.onChallenge(refusal)
  }
}

/** Nothing of the handshake is on its way any more. */
function settled(server: TestServer): Promise<void> {
  return until(() => server.log.includes('notifications/initialized') && server.log.includes('GET'))
}

interface Gate {
  readonly opened: Promise<void>
  open(): void
}

function gate(): Gate {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

test('what is done about a refusal: by status, challenge, helper, proof and what was tried before', () => {
  const facts = {
    challenge: { status: 401, wwwAuthenticate: undefined },
    hadProof: false,
    hasHelper: false,
    hasSource: true,
  }
  const nonce = { ...facts, challenge: { status: 401, wwwAuthenticate: 'DPoP error="use_dpop_nonce"' } }
  const scope = { ...facts, challenge: { status: 403, wwwAuthenticate: 'Bearer error=insufficient_scope' } }
  const fresh = newRenewals('call')
  const table = [
    [planRenewal(facts, fresh), 'look'],
    [planRenewal({ ...facts, hasSource: false }, fresh), 'give-up'],
    [planRenewal({ ...facts, hasHelper: true }, fresh), 'ask-helper'],
    [planRenewal({ ...facts, hasHelper: true }, { ...fresh, hasAskedHelper: true }), 'look'],
    [planRenewal({ ...scope, hasHelper: true }, fresh), 'challenge'],
    [planRenewal(scope, newRenewals('answer')), 'give-up'],
    [planRenewal({ ...facts, challenge: { status: 403, wwwAuthenticate: undefined } }, fresh), 'challenge'],
    [planRenewal(facts, { ...fresh, hasAdopted: true }), 'challenge'],
    [planRenewal(facts, { ...newRenewals('notification'), hasAdopted: true, challenges: 1 }), 'give-up'],
    [planRenewal(facts, { ...fresh, rounds: 3 }), 'give-up'],
    [planRenewal({ ...nonce, hadProof: true }, fresh), 'prove-again'],
    [planRenewal({ ...nonce, hadProof: true }, { ...fresh, rounds: 3 }), 'prove-again'],
    [planRenewal({ ...nonce, hadProof: true }, { ...fresh, hasProved: true }), 'give-up'],
    [planRenewal(nonce, fresh), 'look'],
  ]
  expect(table.map(([step]) => step)).toEqual(table.map(([, step]) => step))
  const renewals = { ...newRenewals('call'), hasProved: true }
  noteRound(renewals, 'adopted')
  expect(renewals).toMatchObject({ rounds: 1, challenges: 0, hasAdopted: true, hasProved: false })
  noteRound(renewals, 'challenged')
  expect(renewals).toMatchObject({ rounds: 2, challenges: 1, hasAdopted: false })
})

for (const client of CLIENTS)
  describe(client, () => {
    verifies(['http.020', 'http.029'], async () => {
      let good = 'Bearer a'
      const held = gate()
      const arrived = gate()
      await using server = await startHttp(async (message, response, request) => {
        if (message.params?.name === 'late' && request.headers.authorization === 'Bearer a') {
          arrived.open()
          await held.opened
          return response.writeHead(401).end()
        }
        return guarded((value) => value === good, echoToken())(message, response, request)
      })
      const wallet = new Wallet('Bearer a')
      await using session = await connect(server.url, { client, authorization: wallet })
      await settled(server)
      const before = server.seen.filter(({ verb }) => verb === 'POST').length
      wallet.asked = 0
      const late = session.callTool('late')
      await arrived.opened
      // Somebody else has renewed it meanwhile.
      good = 'Bearer b'
      wallet.value = 'Bearer b'
      held.open()
      expect(textOf(await late)).toBe('Bearer b')
      expect(wallet.refusals).toEqual([])
      // Twice for what was sent: what was looked at is what was sent.
      expect(server.seen.filter(({ verb }) => verb === 'POST').length - before).toBe(2)
      expect(wallet.asked).toBe(2)
    })

    verifies('http.021', async () => {
      let good = 'Bearer 0'
      await using server = await startHttp(guarded((value) => value === good, echoToken()))
      const wallet = new Wallet('Bearer 0')
      await using session = await connect(server.url, { client, authorization: wallet })
      await settled(server)
      good = 'none'
      let next = 0
      // Gives another value each time it is asked.
      wallet.header = () => `Bearer ${next++}`
      wallet.onChallenge = () => true
      server.seen.length = 0
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'unauthorized', details: { status: 401 } })
      const sent = server.seen
        .filter(({ method }) => method === 'tools/call')
        .map(({ headers }) => headers.authorization)
      expect(sent).toHaveLength(4)
      expect(new Set(sent).size).toBe(4)
      // Adopted, asked, adopted: the challenge was about the value that had been adopted.
      expect(wallet.refusals).toEqual([
        { status: 401, wwwAuthenticate: 'Bearer error="invalid_token"', refused: sent[1], round: 1 },
      ])
      // The same value all the time: the source is asked each time, and told for the which time.
      wallet.header = () => 'Bearer same'
      wallet.refusals.length = 0
      server.seen.length = 0
      await failure(session.callTool('x'))
      expect(wallet.refusals.map(({ refused, round }) => [refused, round])).toEqual(
        [0, 1, 2].map((round) => ['Bearer same', round]),
      )
      expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(4)
    })

    verifies('http.022', async () => {
      let good = /^Bearer [ab]$/
      const held = gate()
      let arrived = 0
      // 403: nobody looks whether the source has another token by now.
      await using server = await startHttp(async (message, response, request) => {
        if (good.test(request.headers.authorization ?? '')) return echoToken()(message, response, request)
        arrived++
        await held.opened
        return response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }).end()
      })
      const wallet = new Wallet('Bearer a')
      await using session = await connect(server.url, { client, authorization: wallet })
      await settled(server)
      good = /^Bearer c$/
      const calls = [session.callTool('a1'), session.callTool('a2')]
      await until(() => arrived === 2)
      wallet.value = 'Bearer b'
      calls.push(session.callTool('b1'), session.callTool('b2'))
      await until(() => arrived === 4)
      const running = new Set<string | undefined>()
      const shared: boolean[] = []
      wallet.onChallenge = async ({ refused }) => {
        shared.push(!running.has(refused))
        running.add(refused)
        await until(() => running.has('Bearer a') && running.has('Bearer b'))
        wallet.value = 'Bearer c'
        return true
      }
      held.open()
      expect((await Promise.all(calls)).map(textOf)).toEqual(Array(4).fill('Bearer c'))
      // Both at the same time: the one for "a" was not told that "b" is being renewed.
      expect([...running].sort()).toEqual(['Bearer a', 'Bearer b'])
      expect(shared.slice(0, 2)).toEqual([true, true])
    })

    verifies('http.003', async () => {
      let isGood = true
      await using server = await startHttp(guarded(() => isGood, echoToken()))
      await using session = await connect(server.url, { client, headers: { authorization: 'Bearer fixed' } })
      await settled(server)
      isGood = false
      server.seen.length = 0
      for (let n = 0; n < 2; n++)
        expect(await failure(session.callTool('x'))).toMatchObject({
          code: 'unauthorized',
          details: { status: 401, challenge: 'Bearer error="invalid_token"' },
        })
      expect(server.log).toEqual(['tools/call', 'tools/call'])
    })

    verifies('http.004', async () => {
      const challenge = 'Bearer error="insufficient_scope", scope="files:write", resource_metadata="https://x/y"'
      let may = true
      await using server = await startHttp((message, response, request) =>
        may || request.headers.authorization === 'Bearer wide'
          ? echoToken()(message, response, request)
          : response.writeHead(403, { 'www-authenticate': challenge }).end(),
      )
      const wallet = new Wallet('Bearer a')
      await using session = await connect(server.url, { client, authorization: wallet })
      await settled(server)
      may = false
      server.seen.length = 0
      // Another token alone is no reason: only the source knows whether it may do more.
      const values = ['Bearer a', 'Bearer b']
      wallet.header = () => values.shift() ?? 'Bearer b'
      expect(await failure(session.callTool('x'))).toMatchObject({
        code: 'unauthorized',
        details: { status: 403, challenge },
      })
      expect(server.log).toEqual(['tools/call'])
      expect(wallet.refusals).toEqual([{ status: 403, wwwAuthenticate: challenge, refused: 'Bearer a', round: 0 }])
      wallet.onChallenge = () => {
        wallet.header = () => 'Bearer wide'
        return true
      }
      expect(textOf(await session.callTool('x'))).toBe('Bearer wide')
      expect(server.log).toEqual(['tools/call', 'tools/call', 'tools/call'])
    })

    verifies('http.035', async () => {
      let sessions = 0
      let good = 'Bearer 0'
      let refusals: number[] = []
      await using server = await startHttp(
        (message, response, request) => {
          if (message.method === 'initialize') sessions++
          const status = message.method === 'tools/call' ? refusals.shift() : undefined
          if (status === 404) return response.writeHead(404).end()
          if (status === 401) good = `Bearer ${Number(good.slice(7)) + 1}`
          return guarded((value) => value === good, echoToken({ 'mcp-session-id': `s${sessions}` }))(
            message,
            response,
            request,
          )
        },
        (_message, response, { verb }) => response.writeHead(verb === 'DELETE' ? 204 : 405).end(),
      )
      const wallet = new Wallet('Bearer 0')
      wallet.onChallenge = () => {
        wallet.value = good
        return true
      }
      await using session = await connect(server.url, { client, authorization: wallet })
      for (const order of [
        [404, 401],
        [401, 404],
      ]) {
        refusals = [...order]
        const before = [sessions, wallet.refusals.length]
        server.seen.length = 0
        expect(textOf(await session.callTool('x')), String(order)).toBe(good)
        expect([sessions - (before[0] ?? 0), wallet.refusals.length - (before[1] ?? 0)], String(order)).toEqual([1, 1])
        expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(3)
      }
      // The second loss of a session is told, whatever came in between.
      refusals = [404, 401, 404]
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'session-lost' })
    })

    verifies('http.033', async () => {
      let isGood = true
      await using server = await startHttp((message, response, request) => {
        if (!isGood && (message.id === ('q1' as never) || message.method?.startsWith('notifications/') === true))
          return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
        if (message.method === 'tools/call') {
          openStream(response)
          isGood = false
          response.write(event({ jsonrpc: '2.0', id: 'q1', method: 'roots/list' }))
          const answered = (): number => server.seen.filter(({ message: one }) => one?.id === ('q1' as never)).length
          return void until(() => answered() >= 1).then(() =>
            response.end(event({ jsonrpc: '2.0', id: message.id, result: textResult('done') })),
          )
        }
        if (message.id === ('q1' as never)) return accept(response)
        return echoToken()(message, response, request)
      })
      const wallet = new Wallet('Bearer a')
      await using session = await connect(
        server.url,
        { client, authorization: wallet },
        { capabilities: { roots: {} }, handlers: { 'roots/list': async () => ({ roots: [] }) } },
      )
      wallet.onChallenge = () => true
      expect(textOf(await session.callTool('x'))).toBe('done')
      expect(wallet.refusals).toEqual([])
      session.notify('notifications/roots/list_changed')
      const notes = (): number => server.log.filter((method) => method === 'notifications/roots/list_changed').length
      await until(() => notes() === 2)
      isGood = true
      await session.request('ping')
      expect(notes()).toBe(2)
      expect(wallet.refusals).toHaveLength(1)
      // The answer takes what others have obtained meanwhile.
      isGood = false
      wallet.refusals.length = 0
      server.seen.length = 0
      const [first, ...rest] = ['Bearer a', 'Bearer a', 'Bearer b']
      wallet.header = () => rest.shift() ?? first
      await session.callTool('x')
      await until(() => server.seen.filter(({ message }) => message?.id === ('q1' as never)).length === 2)
      expect(wallet.refusals).toEqual([])
    })

    verifies(
      ['http.013', 'http.034'],
      async () => {
        let goodPost = 'Bearer 0'
        let goodGet = 'Bearer 0'
        const held = gate()
        let holds = false
        const gets: (string | undefined)[] = []
        await using server = await startHttp(
          guarded((value) => value === goodPost, echoToken()),
          async (_message, response, { headers, verb }) => {
            if (verb !== 'GET') return response.writeHead(200).end()
            gets.push(headers.authorization)
            if (headers.authorization === goodGet) return openStream(response)
            if (holds) await held.opened
            return response.writeHead(401).end()
          },
        )
        const wallet = new Wallet('Bearer 0')
        wallet.onChallenge = () => {
          wallet.value = goodPost
          return true
        }
        const session = await connect(server.url, { client, authorization: wallet })
        await until(() => gets.length === 1)
        // The token is rejected for streams only: however much is called, no further GET with it.
        goodGet = 'Bearer 1'
        server.closeConnections()
        await until(() => gets.length === 2)
        for (let n = 0; n < 5; n++) await session.callTool('x')
        expect(gets).toEqual(['Bearer 0', 'Bearer 0'])
        expect(wallet.refusals).toEqual([])
        // Rejected everywhere: the next operation renews it, and the stream is there again.
        goodPost = 'Bearer 1'
        expect(textOf(await session.callTool('x'))).toBe('Bearer 1')
        await until(() => gets.length === 3)
        // Renewed before it was refused at all: what counts is that the server takes another one.
        goodGet = 'none'
        server.closeConnections()
        await until(() => gets.length === 4)
        await session.callTool('x')
        expect(gets.slice(2)).toEqual(['Bearer 1', 'Bearer 1'])
        wallet.value = goodPost = goodGet = 'Bearer 2'
        await session.callTool('x')
        await until(() => gets.length === 5)
        // Renewed while it is being refused: it need not wait for another operation.
        holds = true
        goodGet = 'none'
        server.closeConnections()
        await until(() => gets.length === 6)
        wallet.value = goodPost = goodGet = 'Bearer 3'
        await session.callTool('x')
        held.open()
        await until(() => gets.length === 7)
        expect(gets.slice(4)).toEqual(['Bearer 2', 'Bearer 2', 'Bearer 3'])
        await session.close()
        const deletes = server.seen.filter(({ verb }) => verb === 'DELETE')
        expect(deletes.map(({ headers }) => headers.authorization)).toEqual(['Bearer 3'])
        expect(server.log.filter((method) => method === 'initialize')).toHaveLength(1)
      },
      30_000,
    )

    test('a DELETE that is refused is not repeated, and asks nobody', async () => {
      let isGood = true
      await using server = await startHttp(
        guarded(() => isGood, echoToken()),
        (_message, response, { verb }) => response.writeHead(verb === 'DELETE' ? 401 : 405).end(),
      )
      const wallet = new Wallet('Bearer a')
      wallet.onChallenge = () => true
      const session = await connect(server.url, { client, authorization: wallet })
      isGood = false
      await session.close()
      expect(server.log.filter((verb) => verb === 'DELETE')).toHaveLength(1)
      expect(wallet.refusals).toEqual([])
    })

    verifies('http.038', async () => {
      let good = 'Bearer 0'
      await using server = await startHttp(
        guarded(
          (value) => value === good,
          legacy((message, response) => {
            good = 'Bearer 1'
            openStream(response)
            response.end(`retry: 1\nid: ${message.id}\ndata:\n\n`)
          }),
        ),
        (_message, response, { headers, verb }) => {
          const id = headers['last-event-id']
          if (verb !== 'GET' || id === undefined) return response.writeHead(405).end()
          if (headers.authorization !== good) return response.writeHead(401, { 'www-authenticate': 'Bearer x' }).end()
          openStream(response)
          return response.end(event({ jsonrpc: '2.0', id: Number(id), result: textResult('the rest') }))
        },
      )
      const wallet = new Wallet('Bearer 0')
      wallet.onChallenge = () => {
        wallet.value = good
        return true
      }
      await using session = await connect(server.url, { client, authorization: wallet })
      expect(textOf(await session.callTool('x'))).toBe('the rest')
      expect(wallet.refusals).toEqual([{ status: 401, wwwAuthenticate: 'Bearer x', refused: 'Bearer 0', round: 0 }])
      expect(server.log.filter((method) => method === 'tools/call')).toHaveLength(1)
      wallet.onChallenge = () => false
      good = 'Bearer 1'
      const gets = server.log.filter((verb) => verb === 'GET').length
      const call = session.callTool('x')
      await until(() => server.log.filter((method) => method === 'tools/call').length === 2)
      good = 'none'
      expect(await failure(call)).toMatchObject({ code: 'closed', details: { sent: true } })
      expect(server.log.filter((verb) => verb === 'GET').length - gets).toBe(1)
    })

    verifies('http.037', async () => {
      await using server = await startHttp((message, response, request) => {
        const { authorization, dpop } = request.headers
        if (message.method !== 'tools/call') return echoToken()(message, response, request)
        if (message.params?.name === 'challenge')
          return response.writeHead(401, { 'www-authenticate': `Bearer error_description="${authorization}"` }).end()
        const older = server.seen.map(({ headers }) => headers.authorization)
        return response.writeHead(500, { 'content-type': 'text/plain' }).end([...older, dpop].join(' '))
      })
      const wallet = new Wallet('DPoP CANARY-oldest-1')
      const authorization: Authorization = {
        header: () => wallet.value,
        challenge: async () => false,
        proof: () => `CANARY-proof-${server.seen.length}`,
      }
      await using session = await connect(server.url, { client, authorization })
      for (const value of ['DPoP CANARY-middle-2', 'DPoP CANARY-newest-3']) {
        wallet.value = value
        for (const name of ['repeat', 'challenge']) {
          const error = await failure(session.callTool(name))
          expect(error.message + String(error.stack) + JSON.stringify(error.details)).not.toContain('CANARY')
        }
      }
      expect(await failure(session.callTool('repeat'))).toMatchObject({
        message: expect.stringContaining('[redacted]'),
      })
    })
  })

for (const client of CLIENTS)
  describe(`helpers and sign-ins, ${client}`, () => {
    verifies('http.050', async () => {
      let may = true
      await using server = await startHttp((message, response, request) =>
        may
          ? echoToken()(message, response, request)
          : response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }).end(),
      )
      let refusals = 0
      const headersProvider = { headers: () => ({ 'x-key': '1' }), refused: async () => ++refusals > 0 }
      await using session = await connect(server.url, { client, headersProvider })
      may = false
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'unauthorized', details: { status: 403 } })
      expect(refusals).toBe(0)
    })

    verifies('http.051', async () => {
      let good = 'Bearer signed-in'
      await using server = await startHttp(guarded((value) => value === good, echoToken()))
      let helped = 0
      const headersProvider = {
        headers: () => ({ Authorization: `Bearer helped-${helped}` }),
        refused: async () => ++helped > 0,
      }
      const wallet = new Wallet('Bearer signed-in')
      await using session = await connect(server.url, { client, headersProvider, authorization: wallet })
      expect(textOf(await session.callTool('x'))).toBe('Bearer signed-in')
      await settled(server)
      good = 'Bearer helped-1'
      server.seen.length = 0
      expect(await failure(session.callTool('x'))).toMatchObject({ code: 'unauthorized' })
      expect(server.log).toEqual(['tools/call'])
      expect(wallet.refusals).toHaveLength(1)
    })

    verifies('http.053', async () => {
      await using server = await startHttp(echoToken())
      const held = gate()
      const headersProvider = { headers: () => held.opened.then(() => ({})), refused: async () => false }
      const start = connect(server.url, { client, headersProvider }, { startupTimeoutMs: 50, era: 'legacy' })
      expect(await failure(start)).toMatchObject({ code: 'timed-out', details: { limit: 'startup' } })
      held.open()
      await later(0)
      expect(server.log).toEqual([])
    })
  })

test('a modern server that refuses a subscription for its token is asked by the rules of calls', async () => {
  let good = 'Bearer 0'
  await using server = await startHttp(
    guarded(
      (value) => value === good,
      modern((message, response) => {
        openStream(response)
        response.write(
          event({
            jsonrpc: '2.0',
            method: 'notifications/subscriptions/acknowledged',
            params: {
              _meta: { 'io.modelcontextprotocol/subscriptionId': message.id },
              notifications: { toolsListChanged: true },
            },
          }),
        )
      }),
    ),
  )
  const wallet = new Wallet('Bearer 0')
  await using session = await connect(server.url, { authorization: wallet })
  good = 'none'
  wallet.onChallenge = () => false
  expect(await failure(session.subscribe({ toolsListChanged: true }))).toMatchObject({ code: 'unauthorized' })
  expect(wallet.refusals).toHaveLength(1)
})
