// Who is asking, as the application sees it.
import type { JsonObject } from '../protocol.ts'

/** A client of the endpoint: a session of the legacy era, or the sender of one modern request. */
export interface Client {
  readonly era: 'legacy' | 'modern'
  /** The protocol version it speaks. */
  readonly version: string
  readonly capabilities: JsonObject
  readonly info: JsonObject
  /** The name of the token it showed; `local` where none is needed. */
  readonly principal: string
  /** What `logging/setLevel` said last; modern clients say it with each request. */
  readonly logLevel: string | undefined
  /**
   * Sends a message that no request of the client asked for. Log messages are held to the level that it wants. False: a modern client, or nowhere
   * to send it.
   */
  notify(method: string, params: JsonObject): boolean
  /** Asks outside of any call; rejects where that is impossible. @throws {WireError} */
  ask(method: string, params: JsonObject, signal?: AbortSignal): Promise<JsonObject>
}
