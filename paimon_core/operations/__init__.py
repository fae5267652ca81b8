"""Operations on tables: compaction, history, row changes and partitions; plans of tasks with one commit."""
