import type { IncomingHttpHeaders } from 'node:http'
import type { HttpScript } from '../src/script.ts'

/** One request that came to the server. `status` is there when the answer has ended. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The JSON-RPC method, or `response`. */
  readonly rpc: string | undefined
  readonly status: number | undefined
}

/** The scripted server inside this process. */
export interface ScriptedHttpServer extends AsyncDisposable {
  readonly url: string
  readonly requests: readonly SeenRequest[]
  /** What it lists; may be changed between calls. */
  readonly brain: { tools: { name: string; [key: string]: unknown }[] }
  /** How many sessions are alive. */
  readonly sessions: ReadonlyMap<string, unknown>
  /** Forgets every session, as a server does that was restarted behind its address. */
  forgetSessions(): void
  close(): Promise<void>
}

export function startScriptedHttp(
  script: HttpScript,
  options?: { readonly onExit?: (code: number) => void },
): Promise<ScriptedHttpServer>
