import { type Platform, type ServerRequestHandler, WireError, type WriteBurst } from '@convoke/wire'
import type { JsonObject } from '../base/index.ts'
import type { LaunchMemory } from './launch-memory.ts'

/** What every connection of one host has in common. */
export interface ProtocolSettings {
  readonly platform: Platform
  readonly clientInfo: { readonly name: string; readonly version: string; readonly title?: string }
  readonly capabilities: JsonObject
  readonly handlers: Readonly<Record<string, ServerRequestHandler>>
  readonly http: 'node' | 'undici'
  readonly writeBurst: WriteBurst
  /** Where started processes are noted; undefined: nowhere. */
  readonly leaseDirectory: string | undefined
  /** How long a process may take to end by itself, in milliseconds; undefined: what the wire thinks right. */
  readonly closeGraceMs: number | undefined
  readonly memory: LaunchMemory
}

/** What a handler throws to answer a server's request with this JSON-RPC error. */
export function requestRefusal(code: number, message: string): Error {
  return new WireError('remote', message, { rpc: { code, message } })
}

/** Is it something that {@link requestRefusal} made? */
export function isRequestRefusal(error: unknown): boolean {
  return error instanceof WireError && error.details.rpc !== undefined
}
