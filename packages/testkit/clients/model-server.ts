// A scripted model for real clients: it calls the first offered tool that `echo` names, once, and then says what came back.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  chatCompletions,
  gemini,
  type Json,
  type ModelRequest,
  type ModelTurn,
  type OfferedTool,
  responses,
} from './model-wires.ts'

const WIRES = [responses, chatCompletions, gemini] as const
const BODY_BYTES_MAX = 16 * 1024 * 1024

/** The running model and what it was shown. */
export interface ModelServer extends AsyncDisposable {
  /** Without a path. */
  readonly url: string
  /** Names of the tools offered with the fullest request so far, namespaces in front. */
  readonly toolNames: readonly string[]
  /** The tool outputs of the latest request that had any. */
  readonly outputs: readonly string[]
  /** Every request as `METHOD path`, for the message of a failure. */
  readonly requests: readonly string[]
}

/** Starts on a free port of the loopback interface. `text` is what the tool is asked to give back. */
export async function startModel(text: string): Promise<ModelServer> {
  const model = new ScriptedModel(text)
  await model.listen()
  return model
}

class ScriptedModel implements ModelServer {
  url = ''
  toolNames: readonly string[] = []
  outputs: readonly string[] = []
  readonly requests: string[] = []
  readonly #text: string
  readonly #server = createServer((request, response) => void this.#handle(request, response))

  constructor(text: string) {
    this.#text = text
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    this.requests.push(`${request.method} ${path}`)
    const wire = WIRES.find((one) => one.matches(path.split('?')[0] ?? ''))
    const body = await readJson(request)
    if (wire === undefined || body === undefined) return void response.writeHead(404).end('{}')
    const { type, text } = wire.write(this.#turn(wire.read(body)), body, path)
    response.writeHead(200, { 'content-type': type }).end(text)
  }

  #turn({ tools, outputs }: ModelRequest): ModelTurn {
    if (tools.length > this.toolNames.length) {
      this.toolNames = tools.map(({ name, namespace }) => (namespace === undefined ? name : `${namespace}/${name}`))
    }
    if (outputs.length > 0) {
      this.outputs = outputs
      return { say: `The tool said: ${outputs.join(' ')}` }
    }
    const call = tools.find(({ name }) => /(^|_)echo$/.test(name))
    return call === undefined ? { say: 'A title' } : { call, args: this.#argumentsFor(call) }
  }

  /** The text, under whatever name the tool wants it. */
  #argumentsFor({ schema }: OfferedTool): Json {
    const names = Object.keys((schema['properties'] ?? {}) as Json)
    return { [names.find((name) => name === 'message' || name === 'text') ?? 'text']: this.#text }
  }
}

async function readJson(request: IncomingMessage): Promise<Json | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > BODY_BYTES_MAX) return undefined
    parts.push(part)
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString()) as Json
  } catch {
    return undefined
  }
}
