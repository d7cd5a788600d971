// Which sleeping servers a command has to start. Pure.
import type { ServerDefinition, ServerLife } from '@convoke/host'

/**
 * What a command wants of the servers: their `tools`, from an earlier run where they are known; `unknown`: those that nobody knows, and no more;
 * what they offer besides; or `live`: everything proven now.
 */
export type Need = 'tools' | 'unknown' | 'resources' | 'prompts' | 'live'

/** What is known of a server that has not been started. */
export interface WakeFacts {
  /** Its entry wants it started at once. */
  readonly isEager: boolean
  /** An earlier run knows tools of it. */
  readonly hasKnownTools: boolean
  /** What it declared in that run; undefined: nobody knows. */
  readonly capabilities: Readonly<Record<string, unknown>> | undefined
}

/** Has the server to be started? */
export function mustWake(need: Need, { isEager, hasKnownTools, capabilities }: WakeFacts): boolean {
  switch (need) {
    case 'live':
      return true
    case 'unknown':
      return !hasKnownTools
    case 'tools':
      return isEager || !hasKnownTools
    case 'resources':
    case 'prompts':
      return capabilities === undefined || capabilities[need] !== undefined
  }
}

/** The facts of a server, from its entry and from what the host knows of it. */
export function wakeFacts({ required, startup }: ServerDefinition, life: ServerLife | undefined): WakeFacts {
  return {
    isEager: required || startup === 'eager',
    hasKnownTools: life !== undefined && life.tools.from !== 'nowhere' && life.tools.shown > life.tools.hidden,
    capabilities: life?.cache.kind === 'kept' ? life.cache.capabilities : undefined,
  }
}
