/** One behaviour that the product promises. */
export interface Requirement {
  /** `area.NNN`; stable for ever. */
  readonly id: string
  /** One sentence of behaviour, readable as a test title. */
  readonly text: string
  /** The milestone that delivers it: 1 the main job, 2 the connection layer, 3 sign-in, 4 extensions and turns. */
  readonly milestone: 1 | 2 | 3 | 4
  /** Where the rule comes from: a section of the specification, an RFC, an attack class. */
  readonly source?: string
  /** How it stands to the scenario of the same number that the design began with. Absent: no such scenario. */
  readonly origin?: ScenarioOrigin
}

/** What became of a scenario of the design. A dropped one is kept for its number and its reason; no test is asked for. */
export type ScenarioOrigin =
  | { readonly kind: 'as-is' }
  | { readonly kind: 'reworded' | 'replaced' | 'dropped'; readonly because: string }

export const AS_IS: ScenarioOrigin = { kind: 'as-is' }
