"""Operations on whole partitions: expiry, detection of idle partitions, and marking partitions as done."""
