import type { JsonObject } from '../protocol.ts'
import type { Client } from './client.ts'
import { cannotAsk } from './failures.ts'
import type { Envelope } from './modern-rules.ts'

/** The sender of one modern request. Nothing can be sent to it but on the stream of that request. */
export class ModernClient implements Client {
  readonly era = 'modern'
  readonly version: string
  readonly capabilities: JsonObject
  readonly info: JsonObject
  readonly principal: string
  readonly logLevel: undefined

  constructor({ version, capabilities, clientInfo }: Envelope, principal: string) {
    this.version = version
    this.capabilities = capabilities
    this.info = clientInfo
    this.principal = principal
  }

  notify(): boolean {
    return false
  }

  ask(method: string, _params: JsonObject): Promise<JsonObject> {
    return Promise.reject(cannotAsk(method, 'a stateless client is asked only on behalf of its own request'))
  }
}
