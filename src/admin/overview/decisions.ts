/** Reads the last decisions with their why, and the numbers behind it. */
import type { CandidateView } from '../../core/records.ts'
import { ttftTargetMs } from '../../core/request.ts'
import type { Ms, Tokens } from '../../core/units.ts'
import type { RingEntry, RingFilter } from '../../telemetry/decision-ring.ts'
import { type DecisionWord, decisionWord } from '../../telemetry/request-line.ts'
import { endSentence, type NameOf, whySentence, wouldHaveSentence } from './why.ts'

export interface DecisionFigures {
  readonly requestId: string
  /** When it was decided; when it left, if it never was. On the clock of the records. */
  readonly atMs: Ms
  readonly model: string
  readonly class: string
  readonly tenant: string
  /** `running` stands for what has no end yet. */
  readonly decision: DecisionWord | 'running'
  readonly verdict?: 'good' | 'bad' | 'excluded'
  readonly why: string
  readonly end?: string
  readonly wouldHave?: string
  readonly promptTokens: Tokens
  readonly waitedMs: Ms
  readonly targetTtftMs?: Ms
  readonly predictedTtftMs?: Ms
  readonly realTtftMs?: Ms
  /** The replicas that were looked at, by name. */
  readonly candidates: readonly CandidateView[]
}

/** Which decisions a viewer asks for. */
export type Shown = 'all' | 'refused' | 'missed'
export const SHOWN: readonly Shown[] = ['all', 'refused', 'missed']

const FILTERS: Readonly<Record<Shown, RingFilter>> = {
  all: {},
  refused: { verdict: 'shed' },
  missed: { verdict: 'missed' },
}

/** The ring as it is read here. */
export interface DecisionSource {
  last(limit: number, filter?: RingFilter): readonly RingEntry[]
}

/** The newest first. */
export function decisionFigures(
  ring: DecisionSource,
  { limit, shown, nameOf }: { readonly limit: number; readonly shown: Shown; readonly nameOf: NameOf },
): readonly DecisionFigures[] {
  const figures = ring.last(limit, FILTERS[shown]).flatMap((entry) => oneOf(entry, nameOf))
  return figures.sort((a, b) => b.atMs - a.atMs)
}

function oneOf({ requestId, decision, settlement }: RingEntry, nameOf: NameOf): DecisionFigures[] {
  const offer = decision?.offer ?? settlement?.offer
  if (offer === undefined) return []
  const end = endSentence(settlement)
  const wouldHave = wouldHaveSentence(decision?.wouldHave, nameOf)
  const targetTtftMs = ttftTargetMs(offer.slo, offer.promptTokens)
  return [
    {
      requestId,
      atMs: decision?.atMs ?? offer.receivedAtMs + (settlement?.e2eMs ?? 0),
      model: offer.pool,
      class: offer.slo.name,
      tenant: offer.tenant,
      decision: settlement === undefined ? 'running' : decisionWord(settlement, decision),
      ...(settlement === undefined ? {} : { verdict: settlement.verdict.kind }),
      why: whySentence(decision, settlement, nameOf),
      ...(end === undefined ? {} : { end }),
      ...(wouldHave === undefined ? {} : { wouldHave }),
      promptTokens: settlement?.promptTokens ?? offer.promptTokens,
      waitedMs: decision?.waitedMs ?? settlement?.queueMs ?? 0,
      ...(targetTtftMs === undefined ? {} : { targetTtftMs }),
      ...(settlement?.predictedTtftMs === undefined ? {} : { predictedTtftMs: settlement.predictedTtftMs }),
      ...(settlement?.ttftMs === undefined ? {} : { realTtftMs: settlement.ttftMs }),
      candidates: (decision?.candidates ?? []).map((view) => ({
        ...view,
        replicaId: nameOf(view.replicaId),
      })),
    },
  ]
}
