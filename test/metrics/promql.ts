import { parser } from '@prometheus-io/lezer-promql';

/** The metrics that one selector names, and the labels it matches. */
interface Selector {
  readonly names: readonly string[];
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
  /** Whether it is of a stretch of time, `[5m]`, as counters need it. */
  readonly isRange: boolean;
}

export interface Query {
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `on` and `ignoring`. */
  readonly grouping: readonly string[];
  readonly isAggregate: boolean;
}

type Node = ReturnType<(typeof parser)['parse']>['topNode'];

/**
 * Reads an expression with Prometheus' own grammar, Grafana's intervals filled in.
 * @throws Error where it is not PromQL
 */
export function promql(expr: string): Query {
  const filled = expr.replaceAll(/\$__(?:rate_)?interval/g, '1m');
  const textOf = ({ from, to }: Node) => filled.slice(from, to);
  const all: Node[] = [];
  parser.parse(filled).iterate({ enter: ({ node }) => void all.push(node) });
  if (all.some(({ type }) => type.isError)) throw new Error(`not PromQL: ${expr}`);
  const below = (node: Node, name: string) =>
    all.filter((one) => one.name === name && one.from >= node.from && one.to <= node.to);
  const matcherOf = (node: Node) => {
    const [label, value] = [node.firstChild, node.lastChild].map((part) => (part ? textOf(part) : ''));
    return { label: label ?? '', value: JSON.parse(value ?? '') as string };
  };
  return {
    selectors: all
      .filter(({ name }) => name === 'VectorSelector')
      .map((node) => {
        const matchers = below(node, 'UnquotedLabelMatcher').map(matcherOf);
        const byName = matchers.filter(({ label }) => label === '__name__').flatMap(({ value }) => value.split('|'));
        return {
          names: [...below(node, 'Identifier').map(textOf), ...byName],
          matchers: matchers.filter(({ label }) => label !== '__name__'),
          isRange: node.parent?.name === 'MatrixSelector',
        };
      }),
    grouping: all
      .filter(({ name }) => name === 'GroupingLabels')
      .flatMap((node) => below(node, 'LabelName').map(textOf)),
    isAggregate: all.some(({ name }) => name === 'AggregateExpr'),
  };
}
