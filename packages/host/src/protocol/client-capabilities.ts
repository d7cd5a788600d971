// What this client says that servers may ask of it. Pure.
import type { JsonObject } from '@convoke/wire'
import { isObject } from '../base/index.ts'

/** What there is somebody to answer for. */
export interface ClientOffers {
  /** Absent: nobody can be asked. */
  readonly elicitation?: 'form' | 'form-and-url' | undefined
  readonly sampling?: boolean
  readonly roots?: boolean
  /** Extensions of the protocol by their names, each with its settings; those without a settings object are left out. */
  readonly extensions?: JsonObject | undefined
}

/**
 * The capabilities of a handshake. Only forms are an empty object, as in the revision that knew nothing else; extensions go out as they were given, unknown
 * fields included, and not at all when there are none.
 */
export function clientCapabilities({ elicitation, sampling, roots, extensions }: ClientOffers): JsonObject {
  const given = Object.entries(extensions ?? {}).filter(([, settings]) => isObject(settings))
  return {
    ...(elicitation === undefined ? {} : { elicitation: elicitation === 'form' ? {} : { form: {}, url: {} } }),
    ...(sampling === true ? { sampling: {} } : {}),
    ...(roots === true ? { roots: {} } : {}),
    ...(given.length === 0 ? {} : { extensions: Object.fromEntries(given) }),
  }
}
