// What a scripted server does with a message, apart from how messages travel. Both eras; the script is data (../src/script.ts).
import { toolsOf } from './catalogs.mjs'

const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const MODERN_VERSION = '2026-07-28'
const META = 'io.modelcontextprotocol/'
const SEEN_MAX = 10_000

const RESOURCES = [
  { uri: 'scripted://one', name: 'one', description: 'A text', mimeType: 'text/plain' },
  { uri: 'scripted://two', name: 'two', description: 'Bytes', mimeType: 'application/octet-stream' },
]
const TEMPLATES = [{ uriTemplate: 'scripted://item/{id}', name: 'item', description: 'An item by its id' }]
const PROMPTS = [{ name: 'greet', description: 'Greets somebody', arguments: [{ name: 'who', required: true }] }]

/** An error that becomes a JSON-RPC error answer. */
class Refusal extends Error {
  constructor(code, message, data) {
    super(message)
    this.answer = { code, message, ...(data === undefined ? {} : { data }) }
  }
}

/**
 * The carrier calls `receive` with each message; `line` is how this message's answer travels: `send(message)` on the stream of the call,
 * `aside(message)` on the server's own stream, `noise(lines)`, `drop()`, `exit(code)`. Ids are unique within its `scope` only.
 */
export function createBrain(script) {
  return new Brain(script)
}

class Brain {
  constructor(script) {
    this.script = script
    this.tools = [...toolsOf(script.tools)]
    this.seen = []
    this.cancelled = []
    this.calls = new Map()
    this.asked = new Map()
    this.nextAskId = 1
    this.stopped = new Map()
    this.listeners = new Map()
    this.logLevel = undefined
  }

  /** Handles one message; resolves when its answer, if it gets one, has been handed to the line. */
  async receive(message, line) {
    if (message.method === undefined) return this.settleAsked(message)
    if (this.seen.length < SEEN_MAX) this.seen.push({ method: message.method, id: message.id, params: message.params })
    if (message.id === undefined) return this.notified(message, line)
    const stop = new AbortController()
    const key = keyOf(line, message.id)
    this.stopped.set(key, stop)
    try {
      const result = await this.answer(message, line, stop.signal)
      if (result !== undefined && !stop.signal.aborted)
        line.send({ jsonrpc: '2.0', id: message.id, result: this.dressed(message, result) })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      line.send({ jsonrpc: '2.0', id: message.id, error: error.answer })
    } finally {
      this.stopped.delete(key)
      this.listeners.delete(key)
    }
  }

  /** Ends what a cancelled call or a lost connection was waiting for. */
  forget(line, id) {
    this.stopped.get(keyOf(line, id))?.abort()
  }

  /** Ends everything, for a server that stops. */
  close() {
    for (const stop of this.stopped.values()) stop.abort()
  }

  notified(message, line) {
    if (message.method !== 'notifications/cancelled') return
    this.cancelled.push(message.params?.requestId)
    this.forget(line, message.params?.requestId)
  }

  settleAsked(message) {
    const settle = this.asked.get(message.id)
    this.asked.delete(message.id)
    settle?.(message.error === undefined ? { result: message.result } : { error: message.error })
  }

  /** A result as its era wants it. */
  dressed(message, result) {
    if (!isModern(message)) return result
    const cacheable = /^(server\/discover|tools\/list|prompts\/list|resources\/(list|templates\/list|read))$/.test(
      message.method,
    )
    return {
      resultType: 'complete',
      ...(cacheable ? { ttlMs: this.script.ttlMs ?? 0, cacheScope: 'private' } : {}),
      ...result,
      _meta: { [`${META}serverInfo`]: this.serverInfo(), ...result._meta },
    }
  }

  serverInfo() {
    return { name: this.script.name ?? 'scripted', version: '1.0.0' }
  }

  answer(message, line, signal) {
    this.checkEra(message)
    const method = METHODS[message.method]
    if (method === undefined) throw new Refusal(-32601, `Method not found: ${message.method}`)
    return method.call(this, message, line, signal)
  }

  checkEra(message) {
    const era = this.script.era ?? 'legacy'
    if (message.method === 'server/discover') return
    if (isModern(message) ? era === 'legacy' : era === 'modern') {
      throw new Refusal(-32022, 'Unsupported protocol version', {
        supported: era === 'modern' ? [MODERN_VERSION] : LEGACY_VERSIONS,
        requested: message.params?.protocolVersion ?? 'none',
      })
    }
  }

  async initialize(message, _line, signal) {
    const { initialize = 'answer', initializeDelayMs = 0 } = this.script
    if (initialize === 'silent') return never(signal)
    await pause(initializeDelayMs, signal)
    if (initialize === 'error') throw new Refusal(-32603, 'No initialization today')
    const asked = message.params?.protocolVersion
    const versions = this.script.protocolVersions ?? LEGACY_VERSIONS
    return {
      protocolVersion: versions.includes(asked) ? asked : versions[0],
      capabilities: this.capabilities(),
      ...(this.script.omitServerInfo === true ? {} : { serverInfo: this.serverInfo() }),
      ...(this.script.instructions === undefined ? {} : { instructions: this.script.instructions }),
    }
  }

  discover(_message, line, signal) {
    const { era = 'legacy', discover = 'answer' } = this.script
    if (discover === 'silent') return never(signal)
    if (discover === 'exit') return line.exit(1)
    if (era === 'legacy') throw new Refusal(-32601, 'Method not found: server/discover')
    return {
      supportedVersions: [MODERN_VERSION],
      capabilities: this.capabilities(),
      ...(this.script.instructions === undefined ? {} : { instructions: this.script.instructions }),
    }
  }

  capabilities() {
    return (
      this.script.capabilities ?? {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
      }
    )
  }

  async list(message, _line, signal) {
    const { listing = 'answer', listDelayMs = 0, pageItems = 0 } = this.script
    if (listing === 'silent') return never(signal)
    await pause(listDelayMs, signal)
    if (listing === 'error') throw new Refusal(-32603, 'The list is not available')
    const listed = this.tools.map(({ does: _does, ...tool }) => tool)
    if (listing === 'same-cursor') return { tools: listed, nextCursor: 'again' }
    const at = Number(message.params?.cursor ?? 0)
    if (listing === 'endless') return { tools: [{ ...listed[0], name: `tool_${at}` }], nextCursor: String(at + 1) }
    if (pageItems === 0) return { tools: listed }
    return {
      tools: listed.slice(at, at + pageItems),
      ...(at + pageItems < listed.length ? { nextCursor: String(at + pageItems) } : {}),
    }
  }

  async call(message, line, signal) {
    const { name, arguments: args = {} } = message.params ?? {}
    const tool = this.tools.find((other) => other.name === name)
    if (tool === undefined) throw new Refusal(-32602, `Unknown tool: ${name}`)
    const count = (this.calls.get(name) ?? 0) + 1
    this.calls.set(name, count)
    if (this.script.exitOnCall === totalOf(this.calls)) return line.exit(9)
    return ACTS[tool.does.kind].call(this, {
      does: { ...tool.does, ...pick(args, tool.does) },
      args,
      name,
      count,
      message,
      line,
      signal,
    })
  }

  /** Asks the host: pushed in the legacy era, by an `input_required` result in the modern one. */
  async ask({ does, message, line }) {
    if (isModern(message)) {
      const given = message.params?.inputResponses?.question
      if (given !== undefined) return plain(JSON.stringify(given))
      return {
        resultType: 'input_required',
        inputRequests: { question: { method: does.method, params: does.params } },
        requestState: `state-${message.id}`,
      }
    }
    const id = `ask-${this.nextAskId++}`
    const answered = new Promise((resolve) => this.asked.set(id, resolve))
    line.send({ jsonrpc: '2.0', id, method: does.method, params: does.params })
    const { result, error } = await answered
    return error === undefined
      ? plain(JSON.stringify(result))
      : { ...plain(`${error.code} ${error.message}`), isError: true }
  }

  /** Tells the host something, on every stream where it may be told. */
  announce(method, params, line) {
    if ((this.script.era ?? 'legacy') !== 'modern')
      line.aside({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) })
    for (const { id, filter, line: own } of this.listeners.values()) {
      if (!wants(filter, method, params)) continue
      own.send({ jsonrpc: '2.0', method, params: { ...params, _meta: { [`${META}subscriptionId`]: id } } })
    }
  }

  listen(message, line, signal) {
    const filter = message.params?.notifications ?? {}
    this.listeners.set(keyOf(line, message.id), { id: message.id, filter, line })
    line.send({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: filter, _meta: { [`${META}subscriptionId`]: message.id } },
    })
    return never(signal)
  }

  read(message) {
    const uri = message.params?.uri ?? ''
    if (uri === 'scripted://two') return { contents: [{ uri, mimeType: 'application/octet-stream', blob: 'AAEC' }] }
    if (uri === 'scripted://one' || uri.startsWith('scripted://item/'))
      return { contents: [{ uri, mimeType: 'text/plain', text: `Content of ${uri}` }] }
    throw new Refusal(isModern(message) ? -32602 : -32002, 'Resource not found', { uri })
  }

  prompt(message) {
    if (message.params?.name !== 'greet') throw new Refusal(-32602, `Unknown prompt: ${message.params?.name}`)
    return {
      messages: [
        { role: 'user', content: { type: 'text', text: `Greet ${message.params?.arguments?.who ?? 'nobody'}` } },
      ],
    }
  }

  complete(message) {
    const value = message.params?.argument?.value ?? ''
    const values = ['alice', 'albert', 'bob'].filter((name) => name.startsWith(value))
    return { completion: { values, total: values.length, hasMore: false } }
  }

  setLevel(message) {
    this.logLevel = message.params?.level
    return {}
  }
}

const METHODS = {
  initialize: Brain.prototype.initialize,
  'server/discover': Brain.prototype.discover,
  ping: () => ({}),
  'tools/list': Brain.prototype.list,
  'tools/call': Brain.prototype.call,
  'resources/list': () => ({ resources: RESOURCES }),
  'resources/templates/list': () => ({ resourceTemplates: TEMPLATES }),
  'resources/read': Brain.prototype.read,
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
  'prompts/list': () => ({ prompts: PROMPTS }),
  'prompts/get': Brain.prototype.prompt,
  'completion/complete': Brain.prototype.complete,
  'logging/setLevel': Brain.prototype.setLevel,
  'subscriptions/listen': Brain.prototype.listen,
}

/** What a tool can do, by the kind in its `does`. */
const ACTS = {
  echo: ({ args }) => plain(String(args.text ?? '')),
  'echo-name': ({ name }) => plain(name),
  text: ({ does }) => plain(does.text),
  content: ({ does: { kind: _kind, ...result } }) => result,
  'tool-error': ({ does }) => ({ ...plain(does.text), isError: true }),
  'rpc-error'({ does }) {
    throw new Refusal(does.code, does.message, does.data)
  },
  silent: ({ signal }) => never(signal),
  async late({ does, args, signal }) {
    await pause(does.ms, signal)
    return plain(String(args.text ?? 'late'))
  },
  big: ({ does }) =>
    plain('The quick brown fox says "jump" \\ and\n'.repeat(Math.ceil(does.bytes / 37)).slice(0, does.bytes)),
  exit: ({ does, count, line }) => (count >= does.onCall ? line.exit(does.code) : plain(`call ${count}`)),
  drop: ({ line }) => line.drop(),
  ask(call) {
    return this.ask(call)
  },
  async progress({ does, message, line, signal }) {
    const progressToken = message.params?._meta?.progressToken
    for (let progress = 1; progress <= does.count && !signal.aborted; progress++) {
      await pause(does.everyMs, signal)
      if (progressToken !== undefined)
        line.send({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress, total: does.count },
        })
    }
    return plain(`${does.count} steps`)
  },
  log({ does, message, line }) {
    const isWanted = isModern(message) ? message.params._meta[`${META}logLevel`] !== undefined : true
    for (let index = 0; isWanted && index < does.count; index++)
      line.send({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: does.level, logger: 'scripted', data: `message ${index + 1}` },
      })
    return plain(`${does.count} messages`)
  },
  async 'list-changed'({ does, count, line, signal }) {
    for (let index = 0; index < does.count && !signal.aborted; index++) {
      await pause(does.everyMs, signal)
      if (does.adds !== undefined)
        this.tools.push({
          name: `${does.adds}_${count}_${index + 1}`,
          description: 'Added later',
          inputSchema: { type: 'object' },
          does: { kind: 'echo' },
        })
      this.announce(`notifications/${does.what}/list_changed`, undefined, line)
    }
    return plain(`${does.count} changes`)
  },
  'resource-updated'({ does, line }) {
    this.announce('notifications/resources/updated', { uri: does.uri }, line)
    return plain(does.uri)
  },
  noise({ does, line }) {
    line.noise(does.lines)
    return plain(`${does.lines.length} lines`)
  },
  seen({ message }) {
    return plain(
      JSON.stringify({
        pid: process.pid,
        requests: this.seen.map(({ method }) => method),
        cancelled: this.cancelled,
        calls: Object.fromEntries(this.calls),
        logLevel: this.logLevel,
        meta: message.params?._meta,
        lastInitialize: this.seen.findLast(({ method }) => method === 'initialize')?.params,
      }),
    )
  },
}

function wants(filter, method, params) {
  if (method === 'notifications/resources/updated') return (filter.resourceSubscriptions ?? []).includes(params?.uri)
  return filter[`${method.split('/')[1]}ListChanged`] === true
}

/** Of the arguments, those that the tool's own numbers can be set by. */
function pick(args, does) {
  return Object.fromEntries(
    Object.entries(args).filter(([key, value]) => key !== 'kind' && key in does && typeof value === typeof does[key]),
  )
}

const keyOf = (line, id) => `${line.scope}:${typeof id}:${id}`
const totalOf = (calls) => [...calls.values()].reduce((sum, count) => sum + count, 0)
const plain = (text) => ({ content: [{ type: 'text', text }] })
const isModern = (message) => message.params?._meta?.[`${META}protocolVersion`] !== undefined

/** Resolves after `ms`, or at once when the call is cancelled. */
function pause(ms, signal) {
  if (ms <= 0 || signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Resolves to nothing when the call is cancelled or its connection lost. */
function never(signal) {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)))
}
